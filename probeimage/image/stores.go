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
func (s *Stores) BuildProbe(spec Spec) (ref string, archive func() (io.Reader, error), err error) {
	if spec.program, err = s.probe(); err != nil {
		return "", nil, err
	}
	return Build(spec)
}

// BuildStore is the image of the store: /store, and nothing else.
func (s *Stores) BuildStore() (ref string, archive func() (io.Reader, error), err error) {
	p, err := s.store()
	if err != nil {
		return "", nil, err
	}
	return Build(Spec{Arch: s.arch, program: p})
}

// program is process 1 of an image, from a file.
type program struct {
	name, path, hash string
}

func (s *Stores) load(name string) (*program, error) {
	p := &program{name: name, path: filepath.Join(s.folder, name+"-linux-"+s.arch)}
	f, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{Path: p.path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, err
	}
	p.hash = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

func (s Spec) programName() string {
	if s.program != nil {
		return s.program.name
	}
	return "probe"
}

func (s Spec) programHash() (string, error) {
	if s.program != nil {
		return s.program.hash, nil
	}
	return probeHash(s.Arch)
}

func (s Spec) programContent() ([]byte, error) {
	if s.program != nil {
		return os.ReadFile(s.program.path)
	}
	return Probe(s.Arch)
}

// repository: both probes are the probe, told apart by their tags.
func (s Spec) repository() string {
	if s.programName() == "store" {
		return StoreRepository
	}
	return Repository
}

// StoreRepository is where the store's image is kept.
const StoreRepository = "localhost/persistencelab/store"
