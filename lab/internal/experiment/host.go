package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"persistencelab/scenarios"
)

// lookFromHost looks at an item in a bind mount or a volume from the other
// side: survival is seen from outside the thing that was removed. nil where
// there is no other side to look from.
func (r *runner) lookFromHost(ctx context.Context, on string, it scenarios.Item) *HostLook {
	if !it.OnDisk() {
		return nil
	}
	m := mountOver(r.plan.container(on), it.Path)
	if m == nil || slices.Contains(m.Options, "O") {
		return nil
	}
	var folder string
	switch m.Kind {
	case scenarios.Bind:
		folder = r.plan.hostFolder(*m)
	case scenarios.VolumeMount:
		if r.plan.volume(m.Source).Options != nil {
			return nil // what lies behind it is mounted for its containers only
		}
		v, err := r.eng.InspectVolume(ctx, r.plan.name(m.Source))
		if err != nil {
			return &HostLook{Skipped: err.Error()}
		}
		folder = filepath.Join(v.Mountpoint, m.Subpath)
	default:
		return nil
	}
	path := filepath.Join(folder, strings.TrimPrefix(it.Path, m.Target))
	if !r.eng.Local() {
		return &HostLook{Path: path, Skipped: "podman runs on another machine"}
	}
	// Below the folder, and nowhere else: the container may have put a
	// symbolic link there.
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) && m.Kind == scenarios.VolumeMount {
		return &HostLook{Path: path, Skipped: "podman's files are not to be seen from here"}
	}
	if err != nil {
		return &HostLook{Path: path, Skipped: err.Error()}
	}
	defer root.Close()
	rel, _ := filepath.Rel(folder, path)
	f, err := root.Open(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return &HostLook{Path: path}
	}
	if err != nil {
		return &HostLook{Path: path, Skipped: err.Error()}
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return &HostLook{Path: path, Skipped: err.Error()}
	}
	return &HostLook{Path: path, Present: true, SHA256: hex.EncodeToString(sum.Sum(nil))}
}
