package vm

import (
	"fmt"
	"io"
)

// Modes of what an initramfs holds.
const (
	modeFolder  = 0o040755
	modeFile    = 0o100644
	modeProgram = 0o100755
	modeCharDev = 0o020600
)

// archive writes a newc cpio archive, the format of an initramfs.
type archive struct {
	w     io.Writer
	inode int
	err   error
}

func (a *archive) folder(name string)            { a.entry(name, modeFolder, 0, 0, nil) }
func (a *archive) file(name string, b []byte)    { a.entry(name, modeFile, 0, 0, b) }
func (a *archive) program(name string, b []byte) { a.entry(name, modeProgram, 0, 0, b) }
func (a *archive) device(name string, x, y int)  { a.entry(name, modeCharDev, x, y, nil) }
func (a *archive) end() error                    { a.entry("TRAILER!!!", 0, 0, 0, nil); return a.err }
func (a *archive) entry(name string, mode, major, minor int, content []byte) {
	if a.err != nil {
		return
	}
	a.inode++
	// magic ino mode uid gid nlink mtime filesize devmajor devminor
	// rdevmajor rdevminor namesize check
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name)+1, 0, name)
	for _, part := range [][]byte{[]byte(head), content} {
		if a.err == nil {
			_, a.err = a.w.Write(append(part[:len(part):len(part)], make([]byte, (4-len(part)%4)%4)...))
		}
	}
}
