package bindings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A store of the lab's own: a graph root below Options.Root, and a run root
// and a folder for libpod's state on the runtime file system, whose paths must
// be short. Nothing of it is shared with the user's store: not the locks
// either, which Podman otherwise keeps in one shared-memory segment per user,
// and frees all of when it first meets a folder it takes for freshly booted.

// storeArgs are podman's global options for the store.
func storeArgs(opts Options) []string {
	run := runtimeDir(opts)
	return []string{
		"--root", filepath.Join(opts.Root, "root"),
		"--runroot", filepath.Join(run, "run"),
		"--tmpdir", filepath.Join(run, "tmp"),
	}
}

// storeConf is what belongs under [engine] and after it.
func storeConf(opts Options) string {
	return fmt.Sprintf("lock_type = \"file\"\n[network]\nnetwork_config_dir = %q\n", filepath.Join(opts.Root, "networks"))
}

func prepareStore(opts Options) error {
	for _, dir := range []string{opts.Root, runtimeDir(opts)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("the lab's own store: %w", err)
		}
	}
	return nil
}

// runtimeDir is the store's folder on the runtime file system. It follows
// from Root alone, so that a dead run's can be found.
func runtimeDir(opts Options) string {
	base := "/run"
	if opts.UID != 0 {
		base = opts.Getenv("XDG_RUNTIME_DIR")
		if base == "" {
			base = os.TempDir()
		}
	}
	sum := sha256.Sum256([]byte(opts.Root))
	return filepath.Join(base, "lab-"+hex.EncodeToString(sum[:6]))
}

// storeSocket is where the store's service listens.
func storeSocket(opts Options) string { return filepath.Join(runtimeDir(opts), "podman.sock") }

// RemoveStore removes a store of the lab's own with everything in it: its
// containers, its mounts, its folders. Of opts it reads Root, UID and Getenv.
// What is not there counts as removed.
func RemoveStore(ctx context.Context, opts Options) error {
	run := runtimeDir(opts)
	if gone(opts.Root) && gone(run) {
		return nil
	}
	if err := EndService(ctx, "unix://"+storeSocket(opts)); err != nil {
		return err
	}
	var words error
	if binary, err := exec.LookPath("podman"); err == nil && !gone(filepath.Join(opts.Root, "root")) {
		// It replaces the user's settings here: the store's own are all
		// that removing needs, on any version.
		env := append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(opts.Root, "containers.conf"), "PODMAN_IGNORE_CGROUPSV1_WARNING=1")
		for _, args := range [][]string{
			{"pod", "rm", "--all", "--force", "--time", "0"},
			{"rm", "--all", "--force", "--volumes", "--time", "0"},
		} {
			words = errors.Join(words, storeCommand(ctx, binary, env, append(storeArgs(opts), args...)))
		}
	}
	killLeft(run)
	unmountBelow(opts.Root)
	unmountBelow(run)
	var err error
	for _, dir := range []string{run, opts.Root} {
		err = errors.Join(err, removeTree(ctx, dir))
	}
	if err != nil {
		return fmt.Errorf("the lab's own store %s: %w", opts.Root, errors.Join(err, words))
	}
	return nil
}

// storeCommand runs podman on the store, bounded: a store whose service hung
// may hold locks.
func storeCommand(ctx context.Context, binary string, env, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return wordsOf(err, string(out))
	}
	return nil
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// removeTree removes a folder. In a rootless store some of the files belong
// to the user's subordinate ids, which only podman's user namespace may remove.
func removeTree(ctx context.Context, dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || os.Getuid() == 0 {
		return err
	}
	if binary, lookErr := exec.LookPath("podman"); lookErr == nil {
		return storeCommand(ctx, binary, os.Environ(), []string{"unshare", "rm", "-rf", "--", dir})
	}
	return err
}

// killLeft ends the container monitors of this store that are still there:
// the ones whose command line names its folder, which no other process's does.
func killLeft(run string) {
	endMonitors(func(args []string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, run+"/") })
	})
}

// EndOrphans ends what goes on running in containers that Podman knows no more,
// on this machine: those whose name begins with prefix. A service killed in the
// middle of a restart leaves one. Its database still says that the container
// has stopped, `podman rm` removes it, and the life that had just been started
// goes on (seen on 4.3.1, rootless).
func EndOrphans(prefix string) {
	endMonitors(func(args []string) bool {
		i := slices.Index(args, "-n") // conmon(8): the container's name
		return i > 0 && i+1 < len(args) && strings.HasPrefix(args[i+1], prefix)
	})
}

// endMonitors ends the container monitors with such a command line, and what
// they look after.
func endMonitors(match func(args []string) bool) {
	for _, pid := range processes() {
		args := commandLine(pid)
		if len(args) == 0 || filepath.Base(args[0]) != "conmon" || !match(args) {
			continue
		}
		for _, child := range children(pid) {
			kill(child)
		}
		kill(pid)
	}
}
