//go:build unix

package bootprobe

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options is what a run may be told.
type Options struct {
	Paths  []string // further places
	Getenv func(string) string
	Now    func() time.Time
}

// Run looks and leaves its evidence in the temp, home and working folder and
// in each of opts.Paths.
func Run(opts Options) *Report {
	r := &Report{Kind: Kind, Version: Version, Run: randomID(), At: opts.Now().UTC().Round(0), DeployID: Unset}
	note := func(what string, err error) {
		r.Errors = append(r.Errors, what+": "+err.Error())
	}
	if id := opts.Getenv("DEPLOY_ID"); id != "" {
		r.DeployID = id
	}
	var err error
	if r.Hostname, err = os.Hostname(); err != nil {
		note("hostname", err)
	}
	if r.CWD, err = os.Getwd(); err != nil {
		note("working folder", err)
	}
	if r.BootID, err = bootID(); err != nil {
		r.BootID = Unknown
		note("boot id", err)
	}
	if r.Process1, err = process1(); err != nil {
		note("process 1", err)
	}
	mounts, err := readMounts()
	if err != nil {
		note("mounts", err)
	}
	r.Container = findContainer(mounts, r.Hostname)
	if r.Container == nil {
		if r.Machine, err = machineID(); err != nil {
			note("machine id", err)
		}
	}
	for _, p := range places(opts) {
		if p.Error == "" {
			look(&p, r, mounts, opts.Now)
		}
		r.Places = append(r.Places, p)
	}
	return r
}

// Forget removes what earlier runs left in the same places and gives the
// paths that went.
func Forget(opts Options) (removed []string, err error) {
	for _, p := range places(opts) {
		for _, name := range []string{FileName, DatabaseName, DatabaseName + "-journal"} {
			path := filepath.Join(p.Path, name)
			switch e := os.Remove(path); {
			case e == nil:
				removed = append(removed, path)
			case !errors.Is(e, os.ErrNotExist):
				err = errors.Join(err, e)
			}
		}
	}
	return removed, err
}

// places are the folders to look at, each once: two names for one folder
// would else find what the other left a moment ago.
func places(opts Options) []Place {
	var list []Place
	var infos []os.FileInfo
	add := func(name, path string, err error) {
		if err == nil {
			path, err = filepath.Abs(path)
		}
		var info os.FileInfo
		if err == nil {
			info, err = os.Stat(path)
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", path)
		}
		if err != nil {
			list, infos = append(list, Place{Names: []string{name}, Path: path, Error: words(err)}), append(infos, nil)
			return
		}
		for i, known := range infos {
			if known != nil && os.SameFile(known, info) {
				if !slices.Contains(list[i].Names, name) {
					list[i].Names = append(list[i].Names, name)
				}
				return
			}
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		list, infos = append(list, Place{Names: []string{name}, Path: path}), append(infos, info)
	}
	temp := opts.Getenv("TMPDIR")
	if temp == "" {
		temp = "/tmp"
	}
	add("temp", temp, nil)
	home := opts.Getenv("HOME")
	if home == "" {
		add("home", "", errors.New("HOME is not set"))
	} else {
		add("home", home, nil)
	}
	cwd, err := os.Getwd()
	add("working", cwd, err)
	for _, p := range opts.Paths {
		add("path", p, nil)
	}
	return list
}

// look does the file and the table of one place.
func look(p *Place, r *Report, mounts []mountLine, now func() time.Time) {
	if m := mountOf(mounts, p.Path); m != nil {
		p.Mount = m.describe(r.Container != nil)
	}
	p.File = &File{Path: filepath.Join(p.Path, FileName)}
	if err := addLine(p.File, r, now); err != nil {
		p.File.Error = words(err)
	}
	p.SQLite = &SQLite{Path: filepath.Join(p.Path, DatabaseName)}
	if err := addRow(p.SQLite, r, now); err != nil {
		p.SQLite.Error = words(err)
	}
}

// words is an error without the path it is about: the report says that beside
// it.
func words(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

func randomID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(b)
}
