package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"persistencelab/scenarios"
)

// lookFromHost looks at an item in a bind mount from the other side: survival
// is seen from outside the thing that was removed. nil where there is no
// other side to look from.
func (r *runner) lookFromHost(on string, it scenarios.Item) *HostLook {
	if it.Kind == scenarios.Memory {
		return nil
	}
	m := mountOver(r.plan.container(on), it.Path)
	if m == nil || m.Kind != scenarios.Bind {
		return nil
	}
	folder := r.plan.hostFolder(*m)
	path := filepath.Join(folder, strings.TrimPrefix(it.Path, m.Target))
	if !r.eng.Local() {
		return &HostLook{Path: path, Skipped: "podman runs on another machine"}
	}
	// Below the folder, and nowhere else: the container may have put a
	// symbolic link there.
	root, err := os.OpenRoot(folder)
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
