package vm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readArchive reads a newc archive by the letter of its description (cpio(5)).
func readArchive(t *testing.T, b []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for at := 0; ; {
		require.Equal(t, "070701", string(b[at:at+6]))
		field := func(n int) int {
			v, err := strconv.ParseUint(string(b[at+6+8*n:at+14+8*n]), 16, 32)
			require.NoError(t, err)
			return int(v)
		}
		mode, size, major, minor, nameSize := field(1), field(6), field(9), field(10), field(11)
		name := string(b[at+110 : at+110+nameSize-1])
		at = (at + 110 + nameSize + 3) / 4 * 4
		if name == "TRAILER!!!" {
			require.Len(t, b, at)
			return out
		}
		out[name] = fmt.Sprintf("%o %d,%d %q", mode, major, minor, b[at:at+size])
		at = (at + size + 3) / 4 * 4
	}
}

func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := &archive{w: &b}
	a.folder("dev")
	a.device("dev/console", 5, 1)
	for n := range 5 { // every way of filling up to four bytes
		a.file(strings.Repeat("f", n+1), bytes.Repeat([]byte{'x'}, n))
	}
	a.program("init", []byte("#!"))
	require.NoError(t, a.end())
	require.Equal(t, map[string]string{
		"dev": `40755 0,0 ""`, "dev/console": `20600 5,1 ""`, "init": `100755 0,0 "#!"`,
		"f": `100644 0,0 ""`, "ff": `100644 0,0 "x"`, "fff": `100644 0,0 "xx"`, "ffff": `100644 0,0 "xxx"`, "fffff": `100644 0,0 "xxxx"`,
	}, readArchive(t, b.Bytes()))
}

// The blocks are written by hand from the format's description
// (lz4_Block_format.md): token, literals, offset, match.
func TestUnpackBlock(t *testing.T) {
	long := strings.Repeat("a", 15+255+7)
	for _, c := range []struct {
		name, packed, want string
	}{
		{"literals only", "\x30abc", "abc"},
		{"a copy", "\x32abc\x03\x00\x10d", "abcabcabcd"},
		{"a copy over itself", "\x16a\x01\x00\x10b", "a" + strings.Repeat("a", 10) + "b"},
		{"long literals", "\xf0\xff\x07" + long, long},
		{"a long copy", "\x1fa\x01\x00\xff\x01\x10b", "a" + strings.Repeat("a", 15+255+1+4) + "b"},
	} {
		got, err := unpackBlock([]byte(c.packed))
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, string(got), c.name)
	}
	for name, packed := range map[string]string{
		"nothing": "", "literals missing": "\x30ab", "offset missing": "\x32abc\x03", "offset 0": "\x32abc\x00\x00\x10d",
		"before the start": "\x32abc\x04\x00\x10d", "length missing": "\xf0\xff", "no end": "\x32abc\x03\x00",
		"too long": "\x1fa\x01\x00" + strings.Repeat("\xff", maxBlock/255+1) + "\x00\x10b",
	} {
		_, err := unpackBlock([]byte(packed))
		require.ErrorIs(t, err, errLZ4, name)
	}
}

// bzImage makes a kernel image around a payload.
func bzImage(payload string) []byte {
	b := make([]byte, 3*512+16)
	b[0x1f1] = 2 // sectors of setup code, beside the first
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(b[0x248:], 16)
	binary.LittleEndian.PutUint32(b[0x24c:], uint32(len(payload)))
	return append(b, payload+"behind it"...)
}

func TestUnpackKernel(t *testing.T) {
	const frame = "\x02\x21\x4c\x18"
	got, err := unpackKernel(bzImage(frame + "\x04\x00\x00\x00\x30abc" + "\x03\x00\x00\x00\x20de" + "\x05\x00\x00\x00"))
	require.NoError(t, err)
	require.Equal(t, "abcde", string(got))
	for name, image := range map[string][]byte{
		"no kernel": []byte("hello"), "packed otherwise": bzImage("\x1f\x8b rest"),
		"cut off": bzImage(frame + "\x04\x00\x00\x00\x30abc")[:1560], "wrong size": bzImage(frame + "\x04\x00\x00\x00\x30abc\x04\x00\x00\x00"),
		"block cut off": bzImage(frame + "\x09\x00\x00\x00\x30abc\x03\x00\x00\x00"),
	} {
		_, err := unpackKernel(image)
		require.Error(t, err, name)
	}
}

func FuzzUnpackBlock(f *testing.F) {
	f.Add([]byte("\x32abc\x03\x00\x10d"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := unpackBlock(b); err == nil && len(out) > maxBlock {
			t.Fatal(len(out))
		}
	})
}

// nbdClient is the other side of the protocol, written from its description.
type nbdClient struct {
	t    *testing.T
	conn net.Conn
}

func (c nbdClient) send(parts ...any) {
	var b bytes.Buffer
	for _, p := range parts {
		require.NoError(c.t, binary.Write(&b, binary.BigEndian, p))
	}
	_, err := c.conn.Write(b.Bytes())
	require.NoError(c.t, err)
}

func (c nbdClient) take(n int) []byte {
	b := make([]byte, n)
	_, err := io.ReadFull(c.conn, b)
	require.NoError(c.t, err)
	return b
}

// request gives the errno and the data.
func (c nbdClient) request(flags, kind uint16, off uint64, length uint32, data []byte) (errno uint32, answer []byte) {
	c.send(uint32(nbdReqMagic), flags, kind, uint64(77), off, length, data)
	head := c.take(16)
	require.Equal(c.t, uint32(nbdAnsMagic), binary.BigEndian.Uint32(head))
	require.Equal(c.t, uint64(77), binary.BigEndian.Uint64(head[8:]))
	errno = binary.BigEndian.Uint32(head[4:])
	if kind == nbdRead && errno == 0 {
		answer = c.take(int(length))
	}
	return errno, answer
}

// connect serves a disk to a new client.
func connect(t *testing.T, d *cachedDisk) nbdClient {
	t.Helper()
	theirs, mine := net.Pipe()
	require.NoError(t, mine.SetDeadline(time.Now().Add(30*time.Second)))
	t.Cleanup(func() { mine.Close() })
	go d.serve(theirs)
	c := nbdClient{t, mine}
	require.Equal(t, "NBDMAGICIHAVEOPT\x00\x03", string(c.take(18)))
	c.send(uint32(nbdFixedNewstyle | nbdNoZeroes))
	const structuredReplies = 8
	c.send(uint64(nbdOptMagic), uint32(structuredReplies), uint32(0))
	require.Equal(t, uint32(nbdUnsupported), binary.BigEndian.Uint32(c.take(20)[12:]))
	c.send(uint64(nbdOptMagic), uint32(nbdOptGo), uint32(6), uint32(0), uint16(0))
	info := c.take(20 + 12)
	require.Equal(t, uint32(nbdInfo), binary.BigEndian.Uint32(info[12:]))
	require.Equal(t, d.size, binary.BigEndian.Uint64(info[22:]))
	require.Equal(t, uint32(nbdAck), binary.BigEndian.Uint32(c.take(20)[12:]))
	return c
}

func testDisk(t *testing.T, lies bool) (path string, open func() *cachedDisk) {
	path = filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{'.'}, 3*blockSize), 0o600))
	return path, func() *cachedDisk {
		d, err := openCachedDisk(path, lies)
		require.NoError(t, err)
		return d
	}
}

// A write across two blocks, small enough to leave most of each.
var (
	cachedAt   = uint64(blockSize - 2)
	cachedData = []byte("abcd")
)

func TestCachedDisk(t *testing.T) {
	for _, c := range []struct {
		name      string
		lies      bool
		flags     uint16
		flush     bool
		cut       bool
		remaining string
	}{
		{"cut without a flush", false, 0, false, true, "...."},
		{"cut after a flush", false, 0, true, true, "abcd"},
		{"cut after a write through the cache", false, nbdFUA, false, true, "abcd"},
		{"switched off in order", false, 0, false, false, "abcd"},
		{"a lie, cut after a flush", true, 0, true, true, "...."},
		{"a lie, cut after a write through the cache", true, nbdFUA, false, true, "...."},
		{"a lie, switched off in order", true, 0, true, false, "abcd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, open := testDisk(t, c.lies)
			d := open()
			client := connect(t, d)
			errno, _ := client.request(c.flags, nbdWrite, cachedAt, uint32(len(cachedData)), cachedData)
			require.Zero(t, errno)
			if c.flush {
				errno, _ := client.request(0, nbdFlush, 0, 0, nil)
				require.Zero(t, errno)
			}
			_, seen := client.request(0, nbdRead, cachedAt-1, 6, nil)
			require.Equal(t, ".abcd.", string(seen), "the disk answers from its cache")
			if c.cut {
				d.cut()
				errno, _ := client.request(0, nbdRead, 0, 1, nil)
				require.Equal(t, uint32(nbdEIO), errno)
				errno, _ = client.request(nbdFUA, nbdWrite, 0, 1, []byte("x"))
				require.Equal(t, uint32(nbdEIO), errno)
			}
			require.NoError(t, d.close())
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Len(t, b, 3*blockSize)
			require.Equal(t, c.remaining, string(b[cachedAt:cachedAt+4]))
			require.Equal(t, strings.Repeat(".", 3*blockSize-len(cachedData)), string(b[:cachedAt])+string(b[cachedAt+4:]), "and nothing else changed")
		})
	}
}

func TestCachedDiskRefuses(t *testing.T) {
	_, open := testDisk(t, false)
	client := connect(t, open())
	for _, r := range []struct {
		kind uint16
		off  uint64
		n    uint32
	}{{nbdRead, 3 * blockSize, 1}, {nbdRead, 3*blockSize - 1, 2}, {nbdRead, 1 << 63, 1}, {nbdWrite, 3 * blockSize, 1}} {
		var data []byte
		if r.kind == nbdWrite {
			data = make([]byte, r.n)
		}
		errno, _ := client.request(0, r.kind, r.off, r.n, data)
		require.Equal(t, uint32(nbdEINVAL), errno, r)
	}
	const trim = 4
	errno, _ := client.request(0, trim, 0, 1, nil)
	require.Equal(t, uint32(nbdEINVAL), errno)
}
