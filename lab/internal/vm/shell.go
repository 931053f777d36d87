package vm

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"persistencelab/probeimage/wire"
)

// The lines a person would type for what a Machine does. Where the lab's own
// QEMU inherits its channels, one that is typed has sockets; socat reaches
// them.

// Files are the kernel and the initramfs that machines start from, as far as
// they have been made: after the first run both are there.
func Files(cacheDir string) (kernel, initrd string) {
	kernel, initrd = "vmlinux", "initramfs.cpio"
	dir := newestKernel(cacheDir)
	if dir == "" {
		return kernel, initrd
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "initramfs-*.cpio")); len(found) > 0 {
		initrd = found[len(found)-1]
	}
	return filepath.Join(dir, kernel), initrd
}

// DiskLines make the machine's folder and disks.
func (s Spec) DiskLines(quote func(string) string) []string {
	lines := []string{"mkdir -p " + quote(s.Folder) + " && cd " + quote(s.Folder)}
	for _, d := range s.Disks {
		raw := d.Name + ".raw"
		lines = append(lines,
			fmt.Sprintf("truncate -s %d %s", DiskSize, raw),
			"mkfs.ext4 "+strings.Join(MkfsArgs(raw), " "))
		if d.Flush == "" {
			lines = append(lines, fmt.Sprintf("qemu-img convert -O qcow2 %s %s", raw, d.file()))
		}
	}
	return lines
}

// StartLines switch the machine on.
func (s Spec) StartLines(kernel, initrd string, quote func(string) string) []string {
	var lines []string
	args := s.arguments("tcg", kernel, initrd, "", func(channel string) string {
		switch channel {
		case "probe", "monitor":
			return "path=" + channel + ".sock,server=on,wait=off"
		}
		for i, d := range s.Disks {
			if s.serial(i) == channel {
				lines = append(lines, "# "+d.Name+": its cache is a server inside the lab; here it is a plain file")
				return fmt.Sprintf("driver=raw,node-name=%s,file.driver=file,file.filename=%s", channel, d.file())
			}
		}
		return ""
	})
	args = append(args, "-daemonize", "-pidfile", "qemu.pid")
	for i := range args {
		args[i] = quote(args[i])
	}
	return append(lines, "qemu-system-x86_64 "+strings.Join(args, " "), WaitLine)
}

// WaitLine waits until the probe answers: after a boot.
const WaitLine = `until { echo '{"v":1,"id":1,"op":"hello"}'; sleep 1; } | socat - UNIX-CONNECT:probe.sock | grep boot_id; do :; done`

// EndLine waits until QEMU has ended in an orderly way.
const EndLine = "while [ -e qemu.pid ]; do sleep 0.1; done"

// AskLine puts a request to the probe.
func AskLine(req wire.Request, quote func(string) string) string {
	req.V = wire.Version
	text, _ := json.Marshal(req) // of plain fields: it can't fail
	return tell(quote(string(text)), "probe.sock", 2)
}

// tell sends a line and shows what is answered within some seconds. QEMU hangs
// up on whoever has nothing more to say, so the line's end must wait.
func tell(quoted, socket string, seconds int) string {
	return fmt.Sprintf("{ echo %s; sleep %d; } | socat - UNIX-CONNECT:%s", quoted, seconds, socket)
}

// CutLine takes the power away, and gives the kernel a moment to clear up.
const CutLine = `[ ! -e qemu.pid ] || kill -9 "$(cat qemu.pid)"; rm -f qemu.pid; sleep 0.2`

// SnapshotLines take a snapshot, or go back to one.
func (s Spec) SnapshotLines(kind, name string, back bool, quote func(string) string) []string {
	word, flag := "savevm", "-c"
	if back {
		word, flag = "loadvm", "-a"
	}
	if kind == Live {
		return []string{tell(quote(fmt.Sprintf(`{"execute":"qmp_capabilities"}{"execute":"human-monitor-command","arguments":{"command-line":"%s %s"}}`, word, name)), "monitor.sock", 5)}
	}
	var lines []string
	for _, i := range s.snapshotted() {
		file := s.Disks[i].file()
		base := name + "-" + file
		switch {
		case kind == Offline:
			lines = append(lines, fmt.Sprintf("qemu-img snapshot %s %s %s", flag, name, file))
			continue
		case back:
			lines = append(lines, "rm "+file)
		default:
			lines = append(lines, "mv "+file+" "+base)
		}
		lines = append(lines, fmt.Sprintf("qemu-img create -q -f qcow2 -F qcow2 -b %s %s", base, file))
	}
	return lines
}
