package experiment

import (
	"fmt"
	"strings"
)

// crashAmid are the lines of a crash in the middle of a write: the write is
// begun and held, and the container killed. A sweep kills the writing process
// alone, which a loop can do often.
func (w *shellWriter) crashAmid(st PlannedStep) []string {
	name := quote(st.name)
	var lines []string
	for _, item := range st.Amid {
		it := w.plan.items[item]
		probe := func(verb, nonce string) string {
			return strings.TrimSpace(fmt.Sprintf("%s exec %s /probe %s %s %s %s %s", w.shell.Podman, name, verb, quote(item), it.Kind, quote(it.Path), nonce))
		}
		if st.Point == "every" {
			lines = append(lines, fmt.Sprintf("for i in $(seq 0 %d); do %s; %s%s; %s $i %d%s; done", st.Points-1, probe("erase", ""),
				probe("write", st.Nonces[item]+".${i}o"), itemFlags(it), probe("interrupt", st.Nonces[item]+".$i"), st.Points, itemFlags(it)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %d %d%s --hold", probe("interrupt", st.Nonces[item]), pointOf[st.Point], len(pointOf), itemFlags(it)))
	}
	if st.Point != "every" {
		lines = append(lines, fmt.Sprintf("%s kill %s", w.shell.Podman, name))
	}
	return lines
}
