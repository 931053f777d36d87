package classroom

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Reader reads attempt files and remembers what it has read, so that a folder
// can be followed. The zero value is ready.
type Reader struct {
	known map[string]knownFile
}

type knownFile struct {
	size    int64
	changed time.Time
	attempt *Attempt
	err     error
}

// Read gives the attempts in files and folders, and what had to be left out:
// each a *FileError. Of a folder it reads every file below it that ends in
// .json and is not hidden; a file that is named is read whatever it is called.
func (r *Reader) Read(paths []string) (attempts []*Attempt, bad []error) {
	files, bad := find(paths)
	type todo struct {
		file string
		info fs.FileInfo
	}
	var fresh []todo
	next := map[string]knownFile{}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			next[f] = knownFile{err: &FileError{File: f, Fault: Unreadable, Reason: reasonOf(err)}}
			continue
		}
		if k, ok := r.known[f]; ok && k.size == info.Size() && k.changed.Equal(info.ModTime()) {
			next[f] = k
			continue
		}
		fresh = append(fresh, todo{f, info})
	}
	read := make([]knownFile, len(fresh))
	var words interner
	var wg sync.WaitGroup
	work := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(fresh)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range work {
				a, err := ReadFile(fresh[i].file)
				if a != nil {
					words.attempt(a)
				}
				read[i] = knownFile{fresh[i].info.Size(), fresh[i].info.ModTime(), a, err}
			}
		}()
	}
	for i := range fresh {
		work <- i
	}
	close(work)
	wg.Wait()
	for i, t := range fresh {
		next[t.file] = read[i]
	}
	r.known = next
	for _, f := range files {
		switch k := next[f]; {
		case k.err != nil:
			bad = append(bad, k.err)
		default:
			attempts = append(attempts, k.attempt)
		}
	}
	return attempts, bad
}

// find lists the files to read, each once, in order.
func find(paths []string) (files []string, bad []error) {
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			bad = append(bad, &FileError{File: p, Fault: Unreadable, Reason: reasonOf(err)})
			continue
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		err = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			hidden := path != p && strings.HasPrefix(d.Name(), ".")
			switch {
			case err != nil:
				bad = append(bad, &FileError{File: path, Fault: Unreadable, Reason: reasonOf(err)})
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.IsDir() && hidden:
				return fs.SkipDir
			case !d.IsDir() && !hidden && strings.HasSuffix(strings.ToLower(d.Name()), ".json"):
				files = append(files, path)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.SkipDir) {
			bad = append(bad, &FileError{File: p, Fault: Unreadable, Reason: reasonOf(err)})
		}
	}
	slices.Sort(files)
	return slices.Compact(files), bad
}

// interner keeps each word once: ten thousand attempts share a few hundred.
type interner struct {
	mu    sync.Mutex
	words map[string]string
}

func (in *interner) one(s *string) {
	if w, ok := in.words[*s]; ok {
		*s = w
		return
	}
	w := strings.Clone(*s) // not a piece of the whole file
	in.words[w], *s = w, w
}

func (in *interner) attempt(a *Attempt) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.words == nil {
		in.words = map[string]string{}
	}
	engines := map[Engine]*Engine{}
	in.one(&a.Tool)
	in.one(&a.Kind)
	for i := range a.Rounds {
		r := &a.Rounds[i]
		for _, s := range []*string{&r.Scenario, &r.Title, &r.Lesson, &r.Hash} {
			in.one(s)
		}
		if r.Engine != nil {
			e := r.Engine
			for _, s := range []*string{&e.Name, &e.Version, &e.StorageDriver, &e.Runtime, &e.Cgroups, &e.Kernel, &e.OS} {
				in.one(s)
			}
			if same := engines[*e]; same != nil {
				r.Engine = same
			} else {
				engines[*e] = e
			}
		}
		for j := range r.Answers {
			q := &r.Answers[j]
			in.one(&q.Variant)
			in.one(&q.Item)
			in.one(&q.Checkpoint)
			in.one((*string)(&q.Predicted))
			if x := q.Result; x != nil {
				for _, s := range []*string{&x.Seen, (*string)(&x.Actual), (*string)(&x.Expected), (*string)(&x.Judgement), &x.Detail, &x.Misconception, &x.Belief} {
					in.one(s)
				}
			}
		}
	}
}

// State says which files in which condition the last Read found: two states
// that are equal gave the same attempts.
func (r *Reader) State() string {
	var b strings.Builder
	for _, f := range slices.Sorted(maps.Keys(r.known)) {
		k := r.known[f]
		fmt.Fprintln(&b, f, k.size, k.changed.UnixNano())
	}
	return b.String()
}
