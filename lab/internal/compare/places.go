package compare

import (
	"fmt"
	"slices"
	"strings"

	"persistencelab/probeimage/bootprobe"
	"persistencelab/scenarios"
)

// places pairs what the first run left with what the second found.
func (c *Comparison) places(a, b *Side) {
	mixed := a.Script != b.Script
	if mixed {
		c.say("places", "", "", "The two probes keep files of different names, so neither finds what the other left: no place can be compared.").Warning = true
	}
	if a.Script && b.Script {
		c.say("files", "", "", "probe.py writes its file anew each time: that both writes went well says nothing of what was there before. Only the rows can tell.")
	}
	var onlySecond []string
	for _, q := range b.Places {
		if !slices.ContainsFunc(a.Places, func(p bootprobe.Place) bool { return pairs(&p, &q, mixed) }) {
			onlySecond = append(onlySecond, q.Path)
		}
	}
	if len(onlySecond) > 0 {
		c.say("places", "", "", "Only the second report looked at %s: give both runs the same --path.", and(onlySecond))
	}
	for _, p := range a.Places {
		if p.Path == "" { // no folder at all: HOME was not set
			continue
		}
		out := Place{Path: p.Path, Names: p.Names}
		i := slices.IndexFunc(b.Places, func(q bootprobe.Place) bool { return pairs(&p, &q, mixed) })
		switch {
		case i < 0:
			out.File.Detail, out.Rows.Detail = "not looked at again", "not looked at again"
			out.Text = fmt.Sprintf("%s: unknown, for the second report did not look there.", p.Path)
		case mixed:
			out.Text = fmt.Sprintf("%s: unknown, for two different probes looked there.", p.Path)
		default:
			c.compare(&out, &p, &b.Places[i], a, b)
		}
		out.Word, out.File.Word, out.Rows.Word = out.Outcome.String(), out.File.Outcome.String(), out.Rows.Outcome.String()
		c.Places = append(c.Places, out)
	}
}

// pairs: the same path is the same place; the script's reports have names
// only.
func pairs(p, q *bootprobe.Place, mixed bool) bool {
	if mixed {
		return slices.ContainsFunc(p.Names, func(n string) bool { return slices.Contains(q.Names, n) })
	}
	return p.Path == q.Path
}

// evidence is the file or the rows of one place in one report.
type evidence struct {
	before *bootprobe.Before
	count  int
	sum    string
	err    string
}

func fileOf(p *bootprobe.Place) evidence {
	if p.Error != "" || p.File == nil {
		return evidence{err: orWords(p.Error)}
	}
	return evidence{p.File.Before, p.File.Runs, p.File.SHA256, p.File.Error}
}

func rowsOf(p *bootprobe.Place) evidence {
	if p.Error != "" || p.SQLite == nil {
		return evidence{err: orWords(p.Error)}
	}
	return evidence{p.SQLite.Before, p.SQLite.Rows, p.SQLite.SHA256, p.SQLite.Error}
}

func orWords(s string) string {
	if s == "" {
		return "it was not looked at"
	}
	return s
}

func (c *Comparison) compare(out *Place, p, q *bootprobe.Place, a, b *Side) {
	out.Storage = Pair{storage(p.Mount), storage(q.Mount)}
	switch {
	case a.Run != "" && a.Run == b.Run:
		out.File.Detail, out.Rows.Detail = "the same run", "the same run"
		out.Text = fmt.Sprintf("%s: unknown, for both reports are of one run.", p.Path)
		return
	case c.Machine == Different && !b.saw(a):
		out.File.Detail, out.Rows.Detail = "another machine", "another machine"
		out.Text = fmt.Sprintf("%s: unknown, for the second report is of another machine.", p.Path)
		return
	case p.Error == "" && q.Error == "no such file or directory":
		out.Outcome, out.File.Outcome, out.Rows.Outcome = scenarios.Lost, scenarios.Lost, scenarios.Lost
		out.File.Detail, out.Rows.Detail = "the folder is gone", "the folder is gone"
		out.File.First, out.Rows.First = fileOf(p).count, rowsOf(p).count
		out.Text = fmt.Sprintf("%s: lost. The folder itself is not there any more.", p.Path)
		return
	}
	if a.Script {
		out.File = Fate{Detail: "written anew each time"}
		out.Rows = fateByCount(rowsOf(p), rowsOf(q))
		out.Outcome = out.Rows.Outcome
		out.Text = c.sentence(out, p, q, true)
		return
	}
	out.File = fate(fileOf(p), fileOf(q), a)
	out.Rows = fate(rowsOf(p), rowsOf(q), a)
	out.Outcome = worse(out.File.Outcome, out.Rows.Outcome)
	out.Text = c.sentence(out, p, q, false)
}

// fate is what became of the first run's line or row.
func fate(p, q evidence, a *Side) Fate {
	f := Fate{First: p.count, Second: q.count}
	set := func(o scenarios.Outcome, format string, args ...any) Fate {
		f.Outcome, f.Detail = o, fmt.Sprintf(format, args...)
		return f
	}
	switch {
	case p.err != "":
		return set(scenarios.Refused, "the first run could not write: %s", p.err)
	case q.before == nil:
		return set(scenarios.Unknown, "the second run could not look: %s", orWords(q.err))
	case q.before.Damage != "":
		return set(scenarios.Changed, "%s", q.before.Damage)
	case found(q.before, a.Run):
		last := q.before.Seen[len(q.before.Seen)-1] == a.Run
		switch {
		case last && p.sum != "" && p.sum != q.before.SHA256:
			return set(scenarios.Changed, "no run came between, and the content is another")
		case last && p.sum != "":
			return set(scenarios.Survived, "byte for byte")
		}
		return set(scenarios.Survived, "other runs came between")
	case !q.before.Present || q.before.Runs == 0:
		return set(scenarios.Lost, "nothing was there")
	case slices.ContainsFunc(q.before.Seen, func(run string) bool { return p.before != nil && slices.Contains(p.before.Seen, run) }):
		return set(scenarios.Changed, "older: earlier runs are there, the first report's is not, as after a rollback or a restored backup")
	case len(q.before.Seen) < q.before.Runs:
		return set(scenarios.Unknown, "so many runs came between that the first can't be seen any more")
	}
	return set(scenarios.Lost, "what is there was left by other runs")
}

// fateByCount is fate for reports that count and know nothing else.
func fateByCount(p, q evidence) Fate {
	f := Fate{First: p.count, Second: q.count}
	switch {
	case p.err != "":
		f.Outcome, f.Detail = scenarios.Refused, "the first run could not write: "+p.err
	case q.err != "":
		f.Detail = "the second run could not look: " + q.err
	case q.count > p.count:
		f.Outcome, f.Detail = scenarios.Survived, "by its count"
	case q.count <= 1:
		f.Outcome, f.Detail = scenarios.Lost, "the second run's own row is all there is"
	default:
		f.Outcome, f.Detail = scenarios.Changed, "fewer than there should be: rolled back, lost and begun anew, or the files are in the wrong order"
	}
	return f
}

// worse is the outcome of a place whose file and rows fared differently.
func worse(a, b scenarios.Outcome) scenarios.Outcome {
	for _, o := range []scenarios.Outcome{scenarios.Lost, scenarios.Changed, scenarios.Unknown, scenarios.Refused} {
		if a == o || b == o {
			return o
		}
	}
	return scenarios.Survived
}

// storage is a mount in words.
func storage(m *bootprobe.Mount) string {
	switch {
	case m == nil:
		return ""
	case m.Storage == bootprobe.NamedVolume:
		return "named volume " + m.Volume
	case m.Storage == bootprobe.AnonymousVolume:
		return "anonymous volume " + short(m.Volume)
	case m.Storage == bootprobe.BindMount:
		return "bind mount of " + m.Root
	case m.Storage == bootprobe.WritableLayer:
		return "writable layer"
	}
	return fmt.Sprintf("%s (%s)", m.Storage, m.Type)
}

// sentence says what became of a place, and why as far as its mounts tell.
func (c *Comparison) sentence(out *Place, p, q *bootprobe.Place, rowsOnly bool) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: ", out.Path)
	rows := fmt.Sprintf("rows %d → %d", out.Rows.First, out.Rows.Second)
	switch {
	case rowsOnly:
		s.WriteString(map[scenarios.Outcome]string{
			scenarios.Survived: "kept its rows (" + rows + ").",
			scenarios.Lost:     "lost its rows (" + rows + "): the disk below it did not survive.",
			scenarios.Changed:  "changed (" + rows + "): " + out.Rows.Detail + ".",
			scenarios.Refused:  "never written: " + out.Rows.Detail + ".",
		}[out.Rows.Outcome])
		if out.Rows.Outcome == scenarios.Unknown {
			s.WriteString("unknown: " + out.Rows.Detail + ".")
		}
		return s.String()
	case out.File.Outcome == out.Rows.Outcome:
		switch out.Outcome {
		case scenarios.Survived:
			fmt.Fprintf(&s, "kept its file and its rows (%s).", rows)
		case scenarios.Lost:
			fmt.Fprintf(&s, "lost its file and its rows (%s).", rows)
		case scenarios.Changed:
			fmt.Fprintf(&s, "changed: file: %s; rows: %s.", out.File.Detail, out.Rows.Detail)
		default:
			fmt.Fprintf(&s, "%s: %s.", refusedWord(out.Outcome), out.File.Detail)
		}
	default:
		fmt.Fprintf(&s, "file %s (%s), rows %s (%s).", out.File.Outcome, out.File.Detail, out.Rows.Outcome, out.Rows.Detail)
	}
	if why := c.why(out.Outcome, p.Mount, q.Mount); why != "" {
		s.WriteString(" " + why)
	}
	return s.String()
}

func refusedWord(o scenarios.Outcome) string {
	if o == scenarios.Refused {
		return "never written"
	}
	return o.String()
}

// why ties an outcome to what the place lies on.
func (c *Comparison) why(o scenarios.Outcome, p, q *bootprobe.Mount) string {
	if p == nil || q == nil {
		return ""
	}
	switch o {
	case scenarios.Lost:
		switch {
		case p.Storage == bootprobe.WritableLayer && c.Happened == Recreated:
			return "It was in the writable layer, which went with the container."
		case p.Storage == bootprobe.Memory:
			return "It was in memory (" + p.Type + "), which does not outlive what holds it."
		case p.Storage == bootprobe.AnonymousVolume && q.Storage == bootprobe.AnonymousVolume && p.Volume != q.Volume:
			return "It was in an anonymous volume (" + short(p.Volume) + "); the new container got a new one (" + short(q.Volume) + ")."
		case p.Storage != q.Storage || p.Volume != q.Volume:
			return fmt.Sprintf("The place lies elsewhere now: first %s, then %s.", storage(p), storage(q))
		}
		return "The disk below it (" + storage(p) + ") did not survive."
	case scenarios.Survived:
		switch {
		case c.Happened == Nothing:
			return ""
		case p.Storage == bootprobe.WritableLayer:
			return "It is in the writable layer: safe from a restart, gone with the container."
		case p.Storage == bootprobe.Memory:
			return "It is in memory (" + p.Type + "), and whatever holds that has not ended yet."
		case p.Storage == bootprobe.AnonymousVolume:
			return "It is on an " + storage(q) + ", which no other container will be given."
		case p.Storage == bootprobe.NamedVolume, p.Storage == bootprobe.BindMount:
			return "It is on a " + storage(q) + ", outside of the container."
		}
	}
	return ""
}
