package classroom

import "testing"

func BenchmarkDecode(b *testing.B) {
	a := sitting(1, "amber-otter-0001", false, []string{"one", "note survived! lost", "seen lost lost", "a survived lost", "b survived lost", "c survived lost", "d survived lost", "e survived lost", "f survived lost", "g survived lost"})
	file, err := a.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := Decode(file); err != nil {
			b.Fatal(err)
		}
	}
}
