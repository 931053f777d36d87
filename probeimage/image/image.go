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
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed all:bin
var bin embed.FS

//go:embed rootfs/etc/passwd
var passwd []byte

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
	packed, err := packedProbe(arch)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the probe for linux/%s: %w", arch, err)
	}
	probe, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack the probe for linux/%s: %w", arch, err)
	}
	return probe, nil
}

func packedProbe(arch string) ([]byte, error) { return packedIn(bin, arch) }

func packedIn(files fs.FS, arch string) ([]byte, error) {
	if !slices.Contains(Archs(), arch) {
		return nil, fmt.Errorf("there is no probe for linux/%s, only for %s", arch, strings.Join(Archs(), " and "))
	}
	packed, err := fs.ReadFile(files, "bin/probe-linux-"+arch+".gz")
	if err != nil {
		return nil, fmt.Errorf("this lab was built without its probe for linux/%s: build it with ./scripts/lab", arch)
	}
	return packed, nil
}

// Build gives the reference of spec's image, and a function that makes it as a
// docker-archive (what `podman load` and the REST API's image load take). The
// archive carries the reference as its tag.
func Build(spec Spec) (ref string, archive func() (io.Reader, error), err error) {
	if err := spec.check(); err != nil {
		return "", nil, err
	}
	ref = spec.Tag
	if ref == "" {
		probe, err := spec.programHash()
		if err != nil {
			return "", nil, err
		}
		text, err := json.Marshal(spec) // maps in the order of their keys
		if err != nil {
			return "", nil, err
		}
		sum := sha256.New()
		fmt.Fprintf(sum, "%s\n%s\n%s\n%s", format, probe, passwd, text)
		ref = spec.repository() + ":" + hex.EncodeToString(sum.Sum(nil))[:12]
	} else if _, err := spec.programHash(); err != nil {
		return "", nil, err
	}
	return ref, func() (io.Reader, error) { return spec.archive(ref) }, nil
}

// Hashing megabytes takes milliseconds, and every variant of a run asks.
var probeHashes = map[string]func() (string, error){
	"amd64": sync.OnceValues(func() (string, error) { return hashProbe("amd64") }),
	"arm64": sync.OnceValues(func() (string, error) { return hashProbe("arm64") }),
}

func probeHash(arch string) (string, error) {
	hash, ok := probeHashes[arch]
	if !ok {
		return hashProbe(arch)
	}
	return hash()
}

func hashProbe(arch string) (string, error) {
	packed, err := packedProbe(arch)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:]), nil
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

func (s Spec) archive(ref string) (io.Reader, error) {
	base, err := s.baseLayer()
	if err != nil {
		return nil, err
	}
	layers := [][]byte{base}
	past := []history{{created, "the probe of Persistence Lab"}}
	if len(s.Files) > 0 {
		files, err := s.filesLayer()
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
			Entrypoint: []string{"/" + s.programName()},
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

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	list := manifest{RepoTags: []string{ref}}
	for _, layer := range layers {
		sum := sha256.Sum256(layer)
		digest := hex.EncodeToString(sum[:])
		cfg.RootFS.DiffIDs = append(cfg.RootFS.DiffIDs, "sha256:"+digest)
		list.Layers = append(list.Layers, digest+".tar")
		if err := addFile(w, digest+".tar", layer, 0o644); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	list.Config = hex.EncodeToString(sum[:]) + ".json"
	if err := addFile(w, list.Config, text, 0o644); err != nil {
		return nil, err
	}
	if text, err = json.Marshal([]manifest{list}); err != nil {
		return nil, err
	}
	if err := addFile(w, "manifest.json", text, 0o644); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &out, nil
}

func (s Spec) baseLayer() ([]byte, error) {
	content, err := s.programContent()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = firstError(
		addDir(w, "etc", 0o755),
		addFile(w, "etc/passwd", passwd, 0o644),
		addFile(w, s.programName(), content, 0o755),
		addDir(w, "tmp", 0o1777),
		w.Close(),
	)
	return out.Bytes(), err
}

func (s Spec) filesLayer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
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
				return nil, err
			}
		}
		if err := addFile(w, name[1:], []byte(s.Files[name]), 0o644); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func addDir(w *tar.Writer, name string, mode int64) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

func addFile(w *tar.Writer, name string, content []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
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
