package image

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Stores makes the images of scenarios that keep state outside their
// containers: the store itself, and the probe with the clients of real
// stores. The two programs are large, so the lab carries neither: it finds
// them as files that scripts/stores builds.
type Stores struct {
	folder, arch string

	probe, store func() (*program, error)
}

// MissingError: the programs are not there.
type MissingError struct {
	Path string
	Err  error
}

func (e *MissingError) Error() string { return fmt.Sprintf("no %s", e.Path) }
func (e *MissingError) Unwrap() error { return e.Err }

// FindStores names the folder in which scripts/stores has put the programs.
// Whether they are there is found out when an image is made of them.
func FindStores(folder, arch string) *Stores {
	s := &Stores{folder: folder, arch: arch}
	s.probe = sync.OnceValues(func() (*program, error) { return s.load("probe") })
	s.store = sync.OnceValues(func() (*program, error) { return s.load("store") })
	return s
}

// BuildProbe is Build with the probe that has the clients of stores.
func (s *Stores) BuildProbe(spec Spec) (ref string, archive func() (io.ReadCloser, error), err error) {
	if spec.program, err = s.probe(); err != nil {
		return "", nil, err
	}
	return Build(spec)
}

// BuildStore is the image of the store: /store, and nothing else.
func (s *Stores) BuildStore() (ref string, archive func() (io.ReadCloser, error), err error) {
	p, err := s.store()
	if err != nil {
		return "", nil, err
	}
	return Build(Spec{Arch: s.arch, program: p})
}

func (s *Stores) load(name string) (*program, error) {
	path := filepath.Join(s.folder, name+"-linux-"+s.arch)
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{Path: path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, err
	}
	return newProgram(name, hex.EncodeToString(sum.Sum(nil)), open), nil
}

// StoreRepository is where the store's image is kept.
const StoreRepository = "localhost/persistencelab/store"
