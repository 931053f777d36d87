package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Steps that reach beyond what the plan made, as pasted lines: they get a store
// of their own, as in a run. Typed by hand they would take the reader's things.

// ownPodman is the shell function that is podman on the plan's own store.
const ownPodman = "own_podman"

// reaches is the note behind a line that is shown, not pasted.
const reaches = "   # everything in the store, also yours: the lab does it in a store of its own"

func (w *shellWriter) storeFolder() string { return filepath.Join(w.plan.Folder, "store") }

// storeRun is where the store's state of this boot is: Podman wants at most 50
// characters for its paths.
func (w *shellWriter) storeRun() string { return "/tmp/" + w.plan.Prefix }

// storeLines make the store and bring the plan's images into it. A lock file
// instead of shared memory keeps it apart from the user's store also there; see
// bindings/store.go.
func (w *shellWriter) storeLines() []string {
	if w.user == "" {
		return nil
	}
	dir, run := quote(w.storeFolder()), w.storeRun()
	conf := run + "/containers.conf"
	lines := []string{
		fmt.Sprintf("mkdir -p -m 700 %s %s", dir, run),
		`printf '[engine]\nlock_type = "file"\n' >` + conf,
		fmt.Sprintf(`%s() { CONTAINERS_CONF=%s %s --root %s --runroot %s/run --tmpdir %[5]s/tmp "$@"; }`,
			ownPodman, conf, w.user, dir, run),
	}
	var refs []string
	for _, c := range w.plan.Variant.Containers {
		refs = append(refs, w.plan.images[c.Name].Ref)
	}
	if w.plan.ownImages { // built in the store, from the probe's
		refs = []string{w.plan.probe.Ref}
	}
	slices.Sort(refs)
	for _, ref := range slices.Compact(refs) {
		lines = append(lines, fmt.Sprintf("%s save %s | %s load -q", w.user, quote(ref), ownPodman))
	}
	return lines
}

// removeStore are the lines after which the folder can be removed: podman
// leaves its overlay folder mounted on itself, and the clean-up process of a
// container that has just been removed, which has the store in its arguments,
// may mount it once more.
func (w *shellWriter) removeStore() []string {
	if w.user == "" {
		return nil
	}
	dir := w.storeFolder()
	line := fmt.Sprintf("for i in 1 2 3 4 5; do umount -l %s 2>/dev/null; rm -rf %s %s && break; sleep 1; done",
		quote(filepath.Join(dir, "overlay")), quote(dir), w.storeRun())
	if w.shell.Rootless {
		line = fmt.Sprintf("%s unshare sh -c %s", w.user, quote(line))
	}
	end := len(dir) - 1
	named := quote(dir[:end] + "[" + dir[end:] + "]") // or grep would find itself
	return []string{
		ownPodman + " rm -f -v -a",
		fmt.Sprintf("for i in $(seq 50); do grep -qs %s /proc/[0-9]*/cmdline || break; sleep 0.2; done", named),
		line,
	}
}

// wide is a line that reaches everything in the store.
func (w *shellWriter) wide(verb string) []string {
	lines := w.podman(verb)
	if w.user == "" {
		lines[0] += reaches
	}
	return lines
}
