// Package image makes the probe's image, offline and without a registry, from
// the probe that is built into the lab.
//
// It promises: the same Spec gives the same bytes, and so the same image id,
// wherever and whenever it is made; the reference names the content, so that
// an image that is there need not be made again; and finding out the reference
// unpacks nothing. The image holds /probe, an empty /tmp everybody may write
// to, /etc/passwd with root and nobody, and what the Spec adds. The
// Containerfile at the root makes the same image with `podman build`.
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Repository is where the lab's images are kept, in the tags Build makes.
const Repository = "localhost/persistencelab/probe"

// format changes when Build makes something else of the same Spec.
const format = "1"

// Spec is an image: the probe and what comes on top.
type Spec struct {
	Arch    string            // amd64 or arm64, as Go and Podman call them
	Tag     string            // the whole reference, for an image that changes under its name; "" to name it by content
	Files   map[string]string // absolute path → content; mode 0644, root's
	Volumes []string          // VOLUME: absolute paths
	User    string            // USER: name or uid, [:group]
	Labels  map[string]string
	Env     map[string]string

	program *program // nil: the probe that is built into the lab
}

// Archs lists the architectures the lab can carry a probe for.
func Archs() []string { return []string{"amd64", "arm64"} }

// Probe is the probe for an architecture, a static Linux binary.
func Probe(arch string) ([]byte, error) {
	p, err := builtIn(arch)
	if err != nil {
		return nil, err
	}
	r, err := p.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	probe, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack the probe for linux/%s: %w", arch, err)
	}
	return probe, nil
}

// Build gives the reference of spec's image, and a function that makes it as a
// docker-archive (what `podman load` and the REST API's image load take). The
// archive carries the reference as its tag; it is made while it is read, and
// whoever asked for it closes it.
func Build(spec Spec) (ref string, archive func() (io.ReadCloser, error), err error) {
	if err := spec.check(); err != nil {
		return "", nil, err
	}
	if spec.program == nil {
		if spec.program, err = builtIn(spec.Arch); err != nil {
			return "", nil, err
		}
	}
	ref = spec.Tag
	if ref == "" {
		text, err := json.Marshal(spec) // maps in the order of their keys
		if err != nil {
			return "", nil, err
		}
		sum := sha256.New()
		fmt.Fprintf(sum, "%s\n%s\n%s\n%s", format, spec.program.hash, passwd, text)
		ref = spec.program.repository() + ":" + hex.EncodeToString(sum.Sum(nil))[:12]
	}
	return ref, func() (io.ReadCloser, error) { return spec.archive(ref) }, nil
}

var (
	userForm = regexp.MustCompile(`^([A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?)?$`)
	envForm  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (s Spec) check() error {
	for _, volume := range s.Volumes {
		if !cleanPath(volume) {
			return fmt.Errorf("image volume %q: an absolute path is needed", volume)
		}
	}
	for name := range s.Files {
		switch {
		case !cleanPath(name):
			return fmt.Errorf("image file %q: an absolute path is needed", name)
		case name == "/probe" || strings.HasPrefix(name, "/probe/"):
			return fmt.Errorf("image file %q: that is the probe's own place", name)
		}
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, both := s.Files[dir]; both {
				return fmt.Errorf("image file %q: %s is a file of the image too", name, dir)
			}
		}
	}
	for name := range s.Env {
		if !envForm.MatchString(name) {
			return fmt.Errorf("image environment: %q is no name for a variable", name)
		}
	}
	if !userForm.MatchString(s.User) {
		return fmt.Errorf("image user %q: user or user:group is needed", s.User)
	}
	return nil
}

func cleanPath(name string) bool {
	return path.IsAbs(name) && path.Clean(name) == name && name != "/" && !strings.ContainsRune(name, 0)
}

// The image's configuration, as the OCI and Docker know it.
type (
	config struct {
		Created      string    `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       runConfig `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
		History      []history `json:"history"`
	}
	runConfig struct {
		User       string              `json:",omitempty"`
		Env        []string            `json:",omitempty"`
		Entrypoint []string            `json:",omitempty"`
		Volumes    map[string]struct{} `json:",omitempty"`
		Labels     map[string]string   `json:",omitempty"`
		StopSignal string              `json:",omitempty"`
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	history struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}
	manifest struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
)

// created is the time in every image: when it was made is no part of it.
const created = "1970-01-01T00:00:00Z"

func (s Spec) archive(ref string) (io.ReadCloser, error) {
	base, err := s.program.base()
	if err != nil {
		return nil, err
	}
	layers := []layer{base}
	past := []history{{created, "the probe of Persistence Lab"}}
	if len(s.Files) > 0 {
		files, err := measure(s.writeFiles)
		if err != nil {
			return nil, err
		}
		layers = append(layers, files)
		past = append(past, history{created, "files of the scenario"})
	}

	cfg := config{
		Created:      created,
		Architecture: s.Arch,
		OS:           "linux",
		Config: runConfig{
			User:       s.User,
			Entrypoint: []string{"/" + s.program.name},
			Labels:     s.Labels,
			StopSignal: "SIGTERM",
		},
		RootFS:  rootFS{Type: "layers"},
		History: past,
	}
	for _, name := range sortedKeys(s.Env) {
		cfg.Config.Env = append(cfg.Config.Env, name+"="+s.Env[name])
	}
	for _, volume := range s.Volumes {
		if cfg.Config.Volumes == nil {
			cfg.Config.Volumes = map[string]struct{}{}
		}
		cfg.Config.Volumes[volume] = struct{}{}
	}
	list := manifest{RepoTags: []string{ref}}
	for _, l := range layers {
		cfg.RootFS.DiffIDs = append(cfg.RootFS.DiffIDs, "sha256:"+l.digest)
		list.Layers = append(list.Layers, l.digest+".tar")
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	list.Config = hex.EncodeToString(sum[:]) + ".json"
	index, err := json.Marshal([]manifest{list})
	if err != nil {
		return nil, err
	}

	r, out := io.Pipe()
	go func() {
		w := tar.NewWriter(out)
		var err error
		for _, l := range layers {
			err = firstError(err, addHeader(w, l.digest+".tar", l.size, 0o644), l.write(w))
		}
		out.CloseWithError(firstError(
			err,
			addFile(w, list.Config, text, 0o644),
			addFile(w, "manifest.json", index, 0o644),
			w.Close(),
		))
	}()
	return r, nil
}

// layer is a tar in an image. It is written anew each time it is asked for:
// several runs make their images at once, and a probe is megabytes.
type layer struct {
	size   int64
	digest string // SHA-256, hexadecimal
	write  func(io.Writer) error
}

func measure(write func(io.Writer) error) (layer, error) {
	sum := sha256.New()
	var size counter
	if err := write(io.MultiWriter(sum, &size)); err != nil {
		return layer{}, err
	}
	return layer{int64(size), hex.EncodeToString(sum.Sum(nil)), write}, nil
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func (s Spec) writeFiles(out io.Writer) error {
	w := tar.NewWriter(out)
	// A layer that names a folder of the one below sets its mode anew.
	made := map[string]bool{"/": true, "/etc": true, "/tmp": true}
	for _, name := range sortedKeys(s.Files) {
		var missing []string
		for dir := path.Dir(name); !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			missing = append(missing, dir)
		}
		slices.Reverse(missing)
		for _, dir := range missing {
			if err := addDir(w, dir[1:], 0o755); err != nil {
				return err
			}
		}
		if err := addFile(w, name[1:], []byte(s.Files[name]), 0o644); err != nil {
			return err
		}
	}
	return w.Close()
}

func addDir(w *tar.Writer, name string, mode int64) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

func addHeader(w *tar.Writer, name string, size, mode int64) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size})
}

func addFile(w *tar.Writer, name string, content []byte, mode int64) error {
	if err := addHeader(w, name, int64(len(content)), mode); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
