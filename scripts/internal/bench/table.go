package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// tableRounds is how often each of the two counts.
const tableRounds = 3

// benchTable has the lab and jq count the same n attempt files, in turn. The
// files are one real attempt with other learners and predictions, sealed anew
// as the format's description says: a seal the lab does not agree with leaves
// the file out, and that is an error here.
func benchTable(ctx context.Context, w io.Writer, n int) error {
	tmp, err := os.MkdirTemp("", "lab-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	folder := filepath.Join(tmp, "attempts")
	size, err := makeAttempts(ctx, tmp, folder, n)
	if err != nil {
		return err
	}
	file := filepath.Join(tmp, "table.json")
	lab := &work{title: "    lab table", command: []string{"bin/lab", "table", "--reveal", "--format", "json", "-o", file, folder}}
	works := []*work{lab}
	jq := &work{title: "    jq, right predictions by question", command: []string{"sh", "-c", jqCount, "sh", folder, filepath.Join(tmp, "jq.json")}}
	if _, err := exec.LookPath("jq"); err == nil {
		works = append(works, jq)
	} else {
		fmt.Fprintln(w, "no jq here to compare with: scripts/setup --test installs it")
	}
	for range tableRounds {
		for _, k := range works {
			u, err := k.once(ctx)
			if err != nil {
				return err
			}
			k.used = append(k.used, u)
		}
	}
	fmt.Fprintf(w, "\n%d attempts, %s on disk\n\n", n, mib(size))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "work\tmedian\tprocessor time\tpeak memory")
	for _, k := range works {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", k.title, ms(median(k.times())), ms(median(k.cpu())), mib(k.peak()))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	target(w, "lab table", median(lab.times()).Seconds(), 2, " s")
	target(w, "its memory", float64(lab.peak())/1e6, 300, " MB")
	if len(works) == 1 {
		return nil
	}
	target(w, "lab/jq", ratio(median(lab.times()), median(jq.times())), 1, "")
	target(w, "processor time", ratio(median(lab.cpu()), median(jq.cpu())), 1, " of jq's")
	return sameCounts(file, filepath.Join(tmp, "jq.json"), n)
}

// jqCount counts, of every question, the answers and the right ones.
const jqCount = `find "$1" -name '*.json' -print0 | xargs -0 cat | jq -n -c '
	reduce (inputs | .rounds[].answers[]) as $a ({};
		.[$a.variant + "/" + $a.item] |= {right: ((.right // 0) + (if $a.predicted == $a.result.actual then 1 else 0 end)), of: ((.of // 0) + 1)})' >"$2"`

// sameCounts: two that disagree have not done the same work.
func sameCounts(labFile, jqFile string, n int) error {
	var table struct {
		Scenarios []struct {
			Questions []struct {
				Variant, Item string
				Right, Wrong  int
			}
		}
	}
	counted := map[string]struct{ Right, Of int }{}
	if err := errors.Join(readJSON(labFile, &table), readJSON(jqFile, &counted)); err != nil {
		return err
	}
	for _, s := range table.Scenarios {
		for _, q := range s.Questions {
			c := counted[q.Variant+"/"+q.Item]
			if c.Right != q.Right || c.Of != n || q.Right+q.Wrong != n {
				return fmt.Errorf("%s, %s: the lab counts %d of %d right, jq %d of %d", q.Variant, q.Item, q.Right, q.Right+q.Wrong, c.Right, c.Of)
			}
		}
	}
	if len(counted) == 0 || len(table.Scenarios) != 1 || len(table.Scenarios[0].Questions) != len(counted) {
		return errors.New("the lab and jq found different questions")
	}
	return nil
}

func readJSON(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// makeAttempts writes n attempts into folder and gives their size.
func makeAttempts(ctx context.Context, tmp, folder string, n int) (size int64, err error) {
	answers, real := filepath.Join(tmp, "answers.yaml"), filepath.Join(tmp, "real")
	if err := os.WriteFile(answers, []byte("version: 1\nanswers:\n  three-mounts: {predict: lost sure, seen: as shown}\n"), 0o644); err != nil {
		return 0, err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return 0, err
	}
	if _, err := measure(ctx, []string{"LAB_STATE_DIR=" + filepath.Join(tmp, "state")}, "bin/lab", "learn", "three-mounts", "--answers", answers, "--attempts", real); err != nil {
		return 0, err
	}
	found, err := filepath.Glob(filepath.Join(real, "*.json"))
	if err != nil || len(found) != 1 {
		return 0, fmt.Errorf("lab learn wrote %d attempts instead of one", len(found))
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		return 0, err
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, b); err != nil {
		return 0, fmt.Errorf("%s: %w", found[0], err)
	}
	for i := range n {
		out, err := another(flat.String(), i)
		if err != nil {
			return 0, err
		}
		size += int64(len(out))
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("bench-%05d.json", i)), out, 0o644); err != nil {
			return 0, err
		}
	}
	return size, nil
}

var predicted = regexp.MustCompile(`"predicted":"\w+"`)

// another makes attempt i of the one in flat: its learner is another, and of
// every four predictions one is the opposite.
func another(flat string, i int) ([]byte, error) {
	var a struct {
		Session, Learner, Digest string
		Rounds                   []struct {
			Scenario, Hash, Sealed, Seal string
			Round                        int
			Answers                      []struct {
				Variant, Item, Checkpoint, Predicted string
				Sure                                 *bool
			}
		}
	}
	if err := json.Unmarshal([]byte(flat), &a); err != nil {
		return nil, err
	}
	session, learner := fmt.Sprintf("%016x", i), fmt.Sprintf("bench-%05d", i)
	flat = strings.NewReplacer(strconv.Quote(a.Session), strconv.Quote(session), strconv.Quote(a.Learner), strconv.Quote(learner),
		strconv.Quote(a.Digest), `""`).Replace(flat)
	k := 0
	flat = predicted.ReplaceAllStringFunc(flat, func(s string) string {
		if k++; (i+k)%4 == 0 {
			return `"predicted":"survived"`
		}
		return s
	})
	if err := json.Unmarshal([]byte(flat), &a); err != nil {
		return nil, err
	}
	before := ""
	for _, r := range a.Rounds {
		var b []byte
		add := func(parts ...string) {
			for _, s := range parts {
				b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
			}
		}
		sealed, err := time.Parse(time.RFC3339Nano, r.Sealed)
		if err != nil {
			return nil, err
		}
		add(before, session, learner, r.Scenario, r.Hash, strconv.Itoa(r.Round), sealed.UTC().Format(time.RFC3339Nano))
		for _, q := range r.Answers {
			sure := ""
			if q.Sure != nil {
				sure = strconv.FormatBool(*q.Sure)
			}
			add(q.Variant, q.Item, q.Checkpoint, q.Predicted, sure)
		}
		sum := sha256.Sum256(b)
		before = hex.EncodeToString(sum[:])
		flat = strings.Replace(flat, r.Seal, before, 1)
	}
	sum := sha256.Sum256([]byte(flat))
	flat = strings.TrimSuffix(flat, `""}`) + `"sha256:` + hex.EncodeToString(sum[:]) + `"}`
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(flat), "", " "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
