// Package vm runs virtual machines for experiments: QEMU, a Debian cloud
// kernel, and the lab's probe as /init, which speaks the same protocol over a
// serial port as it does in a container.
//
// What it promises:
//
//   - A machine that is started has answered: Start returns with the probe's
//     greeting, or with a *BootError that holds the console's last lines.
//     A boot is tried twice.
//   - Nothing stays behind. QEMU dies with the lab, however the lab dies (the
//     kernel sees to it); there are no sockets to remove, for all channels are
//     inherited socket pairs; all files are in the machine's folder.
//   - A cut is a power cut: QEMU is killed with SIGKILL, and a disk with a
//     cache of its own loses what was not flushed. What the guest had given to
//     a disk without one is kept, whatever the guest knows of it.
//   - KVM is used only after a machine has really booted with it on this host;
//     a /dev/kvm that exists proves nothing. Otherwise QEMU emulates, and a
//     boot takes about two seconds.
//
// It needs QEMU, mkfs.ext4 and a kernel that scripts/setup --vm puts into the
// lab's cache; Find says what is missing.
package vm
