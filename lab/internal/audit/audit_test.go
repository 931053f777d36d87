package audit

import (
	"fmt"
	"testing"
	"time"

	"persistencelab/lab/engine"
)

func many(n int) *Facts {
	f := &Facts{Holding: engine.Holding{Container: engine.Container{Name: "web", State: "running"}}, At: time.Unix(1e9, 0)}
	for i := range n {
		f.Layer.Files = append(f.Layer.Files, File{Path: fmt.Sprintf("/var/lib/app/objects/%02x/%06d.bin", i%256, i), Bytes: 10, Modified: time.Unix(1e9, 0)})
	}
	return f
}

func BenchmarkJudge(b *testing.B) {
	f := many(100_000)
	for b.Loop() {
		Judge(f, nil)
	}
}
