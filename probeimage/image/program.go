package image

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
)

//go:embed all:bin
var bin embed.FS

//go:embed rootfs/etc/passwd
var passwd []byte

// program is process 1 of an image, a static Linux binary. It is megabytes:
// nothing holds it whole.
type program struct {
	name string
	hash string                        // SHA-256 of what it is kept as, hexadecimal
	open func() (io.ReadCloser, error) // as it runs
	base func() (layer, error)         // the layer with it, measured once
}

func newProgram(name, hash string, open func() (io.ReadCloser, error)) *program {
	p := &program{name: name, hash: hash, open: open}
	p.base = sync.OnceValues(func() (layer, error) {
		size, err := p.size()
		if err != nil {
			return layer{}, err
		}
		return measure(func(out io.Writer) error { return p.writeBase(out, size) })
	})
	return p
}

func (p *program) size() (int64, error) {
	r, err := p.open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}

// writeBase writes the layer every image of the lab begins with.
func (p *program) writeBase(out io.Writer, size int64) error {
	content, err := p.open()
	if err != nil {
		return err
	}
	defer content.Close()
	w := tar.NewWriter(out)
	err = firstError(
		addDir(w, "etc", 0o755),
		addFile(w, "etc/passwd", passwd, 0o644),
		addHeader(w, p.name, size, 0o755),
	)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, content); err != nil {
		return fmt.Errorf("the %s for an image: %w", p.name, err)
	}
	return firstError(addDir(w, "tmp", 0o1777), w.Close())
}

// repository: both probes are the probe, told apart by their tags.
func (p *program) repository() string {
	if p.name == "store" {
		return StoreRepository
	}
	return Repository
}

// Hashing megabytes takes milliseconds, and every variant of a run asks.
var probes = map[string]func() (*program, error){
	"amd64": sync.OnceValues(func() (*program, error) { return packedIn(bin, "amd64") }),
	"arm64": sync.OnceValues(func() (*program, error) { return packedIn(bin, "arm64") }),
}

// builtIn is the probe the lab carries for an architecture.
func builtIn(arch string) (*program, error) {
	probe, ok := probes[arch]
	if !ok {
		return nil, fmt.Errorf("there is no probe for linux/%s, only for %s", arch, strings.Join(Archs(), " and "))
	}
	return probe()
}

func packedIn(files fs.FS, arch string) (*program, error) {
	open := func() (fs.File, error) { return files.Open("bin/probe-linux-" + arch + ".gz") }
	packed, err := open()
	if err != nil {
		return nil, fmt.Errorf("this lab was built without its probe for linux/%s: build it with ./scripts/lab", arch)
	}
	defer packed.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, packed); err != nil {
		return nil, err
	}
	return newProgram("probe", hex.EncodeToString(sum.Sum(nil)), func() (io.ReadCloser, error) {
		packed, err := open()
		if err != nil {
			return nil, err
		}
		r, err := gzip.NewReader(packed)
		if err != nil {
			return nil, fmt.Errorf("unpack the probe for linux/%s: %w", arch, err)
		}
		return r, nil // what is built in needs no closing
	}), nil
}
