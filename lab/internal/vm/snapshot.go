package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// How a snapshot is taken.
const (
	// Offline: of the disks, inside their files, while the machine is off.
	Offline = "offline"
	// Overlay: of the disks, by making the files as they are the base of
	// new ones, while the machine is off.
	Overlay = "overlay"
	// Live: of the disks and the memory, while the machine runs.
	Live = "live"
)

// snapshotted are the indexes of the disks a snapshot is of: those that are
// no instance store and keep their bytes in a file of QEMU's.
func (s Spec) snapshotted() []int {
	var out []int
	for i, d := range s.Disks {
		if !d.InstanceStore && d.Flush == "" {
			out = append(out, i)
		}
	}
	return out
}

// Snapshot keeps the machine as it is now under a name.
func (m *Machine) Snapshot(ctx context.Context, kind, name string) error {
	return m.snapshot(ctx, kind, name, "snapshot-save", "-c", os.Rename)
}

// Rollback puts the machine back to a snapshot: the disks, and with a live
// one the memory, too. The client of the probe goes on being of use.
func (m *Machine) Rollback(ctx context.Context, kind, name string) error {
	return m.snapshot(ctx, kind, name, "snapshot-load", "-a", func(file, _ string) error { return os.Remove(file) })
}

func (m *Machine) snapshot(ctx context.Context, kind, name, job, flag string, aside func(file, base string) error) error {
	disks := m.spec.snapshotted()
	if len(disks) == 0 {
		return errors.New("no disk of the machine can be kept in a snapshot")
	}
	if (kind == Live) != m.On() {
		return fmt.Errorf("a snapshot that is %s can't be used while the machine is switched %s", kind, map[bool]string{true: "on", false: "off"}[m.On()])
	}
	if kind == Live {
		var nodes []string
		for _, i := range disks {
			nodes = append(nodes, m.spec.serial(i))
		}
		return m.run.monitor.job(ctx, job, map[string]any{"tag": name, "vmstate": nodes[0], "devices": nodes})
	}
	for _, i := range disks {
		file := m.spec.Disks[i].file()
		if kind == Offline {
			if err := m.tool(ctx, m.host.qemuImg, "snapshot", flag, name, file); err != nil {
				return err
			}
			continue
		}
		base := name + "-" + file
		if err := aside(filepath.Join(m.folder, file), filepath.Join(m.folder, base)); err != nil {
			return err
		}
		if err := m.tool(ctx, m.host.qemuImg, "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, file); err != nil {
			return err
		}
	}
	return nil
}
