//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/wire"
)

// mounted starts a probe in a mount namespace of its own, and gives a way to
// run shell lines in there. Whatever they mount goes with the probe.
func mounted(t *testing.T) (*process, func(script string) string) {
	t.Helper()
	nsenter, err := exec.LookPath("nsenter")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root and nsenter (util-linux) to mount something")
	}
	p := start(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	})
	require.NotNil(t, p.call(t, wire.Request{Op: wire.Hello}).Hello)
	return p, func(script string) string {
		t.Helper()
		out, err := exec.Command(nsenter, "-t", fmt.Sprint(p.Process.Pid), "-m", "sh", "-euc", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
		return string(out)
	}
}

func TestReadOnlyMount(t *testing.T) {
	p, sh := mounted(t)
	dir := t.TempDir()
	file, db := filepath.Join(dir, "note"), filepath.Join(dir, "db")
	mustWrite(t, newStore(), fileItem(file, "n", ""))
	mustWrite(t, newStore(), rowsItem(db, "n", 3))
	killed := killedWriter(t, dir)
	// As a snapshot has it: the log without its index.
	snapshot := filepath.Join(dir, "snapshot.db")
	for _, suffix := range []string{"", "-wal"} {
		require.NoError(t, copyFile(killed+suffix, snapshot+suffix))
	}
	before := tree(t, dir)
	sh(fmt.Sprintf("mount --bind %[1]s %[1]s; mount -o remount,ro,bind %[1]s", dir))

	read := func(item wire.Item) *wire.Found {
		reply := p.call(t, wire.Request{Op: wire.Read, Item: &item})
		require.Nil(t, reply.Error, "%v", reply.Error)
		return reply.Found
	}
	require.Equal(t, []string{"n"}, read(fileItem(file, "", "")).Nonces)
	require.Equal(t, 3, read(rowsItem(db, "", 0)).Rows)
	require.Equal(t, 4, read(rowsItem(killed, "", 0)).Rows)
	require.Equal(t, 4, read(rowsItem(snapshot, "", 0)).Rows)
	require.False(t, read(rowsItem(filepath.Join(dir, "missing"), "", 0)).Present)

	for _, mode := range []string{modePlain, modeTruncate, modeFsync, modeAtomic, modeAppend} {
		for _, path := range []string{file, filepath.Join(dir, "new"), filepath.Join(dir, "no", "folder")} {
			item := fileItem(path, "m", mode)
			reply := p.call(t, wire.Request{Op: wire.Write, Item: &item})
			require.NotNil(t, reply.Error)
			require.Equal(t, wire.CodeReadOnly, reply.Error.Code, reply.Error.Text)
		}
	}
	for _, path := range []string{db, filepath.Join(dir, "new"), filepath.Join(dir, "no", "folder")} {
		item := rowsItem(path, "m", 1)
		reply := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.NotNil(t, reply.Error)
		require.Equal(t, wire.CodeReadOnly, reply.Error.Code, reply.Error.Text)
	}
	out, code := p.run(t, "write", "note", "file", file, "m")
	require.Equal(t, "note: refused (read-only file system)\n", out)
	require.Zero(t, code)
	require.Equal(t, before, tree(t, dir))
}

// A database file alone on a mount, with its folder read-only: SQLite can't
// make its log.
func TestReadOnlyFolderAroundADatabase(t *testing.T) {
	p, sh := mounted(t)
	dir, outside := t.TempDir(), t.TempDir()
	real := filepath.Join(outside, "db")
	mustWrite(t, newStore(), rowsItem(real, "n", 3))
	db := filepath.Join(dir, "db")
	require.NoError(t, os.WriteFile(db, nil, 0o644))
	sh(fmt.Sprintf("mount --bind %[1]s %[1]s; mount --bind %[2]s %[3]s; mount -o remount,ro,bind %[1]s", dir, real, db))
	item := rowsItem(db, "m", 1)
	reply := p.call(t, wire.Request{Op: wire.Write, Item: &item})
	require.NotNil(t, reply.Error)
	require.Equal(t, wire.CodeReadOnly, reply.Error.Code, reply.Error.Text)
	reply = p.call(t, wire.Request{Op: wire.Read, Item: &item})
	require.Nil(t, reply.Error)
	require.Equal(t, 3, reply.Found.Rows)
}

func TestNoSpace(t *testing.T) {
	p, sh := mounted(t)
	dir := t.TempDir()
	// Room for the database and a little of its log, which is where it
	// first runs out.
	for _, kib := range []int{16, 40, 64, 100, 128, 256} {
		sh(fmt.Sprintf("mount -t tmpfs -o size=%dk,mode=1777 none %s", kib, dir))
		item := rowsItem(filepath.Join(dir, "db"), "n", 20_000)
		reply := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.NotNil(t, reply.Error, "%d KiB", kib)
		require.Equal(t, wire.CodeNoSpace, reply.Error.Code, "%d KiB: %s", kib, reply.Error.Text)
		require.Empty(t, strings.TrimSpace(sh("ls -A "+dir)), "nothing of it stays")

		for _, mode := range []string{modePlain, modeTruncate, modeFsync, modeAppend, modeAtomic} {
			small := fileItem(filepath.Join(dir, "note"), "old", modePlain)
			require.Nil(t, p.call(t, wire.Request{Op: wire.Write, Item: &small}).Error)
			big := fileItem(small.Path, "new", mode)
			big.Size = 1 << 20
			reply := p.call(t, wire.Request{Op: wire.Write, Item: &big})
			require.NotNil(t, reply.Error, mode)
			require.Equal(t, wire.CodeNoSpace, reply.Error.Code, reply.Error.Text)
			found := p.call(t, wire.Request{Op: wire.Read, Item: &small}).Found
			if mode == modeAtomic {
				require.Empty(t, found.Torn, "the old note is whole")
				require.Equal(t, []string{"old"}, found.Nonces)
				require.Equal(t, "note\n", sh("ls -A "+dir))
			} else {
				require.NotEmpty(t, found.Torn, mode)
			}
		}
		sh("umount " + dir)
	}
}
