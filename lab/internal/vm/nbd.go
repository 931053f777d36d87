package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
)

// cachedDisk is a disk with a cache of its own, as real ones have: what is
// written to it lies in its memory until it is told to flush, and the power
// cut takes the rest. It serves one connection in the NBD protocol
// (github.com/NetworkBlockDevice/nbd, doc/proto.md): newstyle, without TLS,
// simple replies, FLUSH and FUA.
//
// A disk that lies answers FLUSH and FUA like an honest one and keeps all of
// it in its memory still. Switched off in an orderly way, either writes its
// cache out.
type cachedDisk struct {
	file *os.File
	size uint64
	lies bool

	mu    sync.Mutex
	cache map[uint64][]byte // block number → block
	dead  bool              // the power is off
}

const blockSize = 4096

func openCachedDisk(path string, lies bool) (*cachedDisk, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &cachedDisk{file: f, size: uint64(info.Size()), lies: lies, cache: map[uint64][]byte{}}, nil
}

// cut takes the power away: what is in the cache is gone.
func (d *cachedDisk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead, d.cache = true, nil
}

// close writes the cache out and closes the disk.
func (d *cachedDisk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.persist()
	d.dead = true
	return errors.Join(err, d.file.Close())
}

// persist writes out what is in the cache. Callers hold the lock.
func (d *cachedDisk) persist() error {
	for n, block := range d.cache {
		if _, err := d.file.WriteAt(block, int64(n*blockSize)); err != nil {
			return err
		}
		delete(d.cache, n)
	}
	return nil
}

var errDead = errors.New("the disk has no power")

func (d *cachedDisk) readAt(p []byte, off uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	if _, err := d.file.ReadAt(p, int64(off)); err != nil {
		return err
	}
	eachBlock(p, off, func(n uint64, at int, part []byte) {
		if block := d.cache[n]; block != nil {
			copy(part, block[at:])
		}
	})
	return nil
}

func (d *cachedDisk) writeAt(p []byte, off uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	var err error
	eachBlock(p, off, func(n uint64, at int, part []byte) {
		block := d.cache[n]
		if block == nil {
			block = make([]byte, blockSize)
			if _, readErr := d.file.ReadAt(block, int64(n*blockSize)); readErr != nil && readErr != io.EOF {
				err = readErr
			}
			d.cache[n] = block
		}
		copy(block[at:], part)
	})
	return err
}

// flush answers that all is on the disk.
func (d *cachedDisk) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDead
	}
	if d.lies {
		return nil
	}
	return d.persist()
}

// eachBlock splits p, which begins at off, at the borders of blocks.
func eachBlock(p []byte, off uint64, do func(n uint64, at int, part []byte)) {
	for len(p) > 0 {
		at := int(off % blockSize)
		part := p[:min(len(p), blockSize-at)]
		do(off/blockSize, at, part)
		p, off = p[len(part):], off+uint64(len(part))
	}
}

// Numbers of the protocol.
const (
	nbdMagic      = 0x4e42444d41474943 // NBDMAGIC
	nbdOptMagic   = 0x49484156454f5054 // IHAVEOPT
	nbdReplyMagic = 0x3e889045565a9
	nbdReqMagic   = 0x25609513
	nbdAnsMagic   = 0x67446698

	nbdFixedNewstyle, nbdNoZeroes = 1, 2

	nbdOptExport, nbdOptAbort, nbdOptInfo, nbdOptGo = 1, 2, 6, 7

	nbdAck, nbdInfo, nbdUnsupported = 1, 3, 1<<31 | 1

	nbdHasFlags, nbdSendFlush, nbdSendFUA = 1, 4, 8

	nbdRead, nbdWrite, nbdDisconnect, nbdFlush = 0, 1, 2, 3

	nbdFUA = 1

	nbdEIO, nbdEINVAL = 5, 22

	nbdMaxRequest = 32 << 20 // of one request, as clients expect
)

// serve talks to one client until it leaves.
func (d *cachedDisk) serve(conn net.Conn) error {
	defer conn.Close()
	if err := d.negotiate(conn); err != nil {
		return err
	}
	for {
		var head [28]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		be := binary.BigEndian
		flags, kind := be.Uint16(head[4:]), be.Uint16(head[6:])
		off, length := be.Uint64(head[16:]), be.Uint32(head[24:])
		if be.Uint32(head[:]) != nbdReqMagic || length > nbdMaxRequest {
			return errors.New("nbd: not a request")
		}
		var data []byte
		fault := uint32(0)
		if kind == nbdRead || kind == nbdWrite {
			data = make([]byte, length)
			if kind == nbdWrite {
				if _, err := io.ReadFull(conn, data); err != nil {
					return err
				}
			}
		}
		var err error
		switch {
		case data != nil && (off > d.size || uint64(length) > d.size-off):
			fault, data = nbdEINVAL, nil
		case kind == nbdRead:
			err = d.readAt(data, off)
		case kind == nbdWrite:
			if err = d.writeAt(data, off); err == nil && flags&nbdFUA != 0 {
				err = d.flush()
			}
			data = nil
		case kind == nbdFlush:
			err = d.flush()
		case kind == nbdDisconnect:
			return nil
		default:
			fault = nbdEINVAL
		}
		if err != nil {
			fault, data = nbdEIO, nil
		}
		answer := be.AppendUint32(nil, nbdAnsMagic)
		answer = be.AppendUint32(answer, fault)
		answer = append(answer, head[8:16]...)
		if _, err := conn.Write(append(answer, data...)); err != nil {
			return err
		}
	}
}

func (d *cachedDisk) negotiate(conn net.Conn) error {
	be := binary.BigEndian
	hello := be.AppendUint64(nil, nbdMagic)
	hello = be.AppendUint64(hello, nbdOptMagic)
	hello = be.AppendUint16(hello, nbdFixedNewstyle|nbdNoZeroes)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	var clientFlags [4]byte
	if _, err := io.ReadFull(conn, clientFlags[:]); err != nil {
		return err
	}
	export := be.AppendUint64(nil, d.size)
	export = be.AppendUint16(export, nbdHasFlags|nbdSendFlush|nbdSendFUA)
	for {
		var head [16]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		option, length := be.Uint32(head[8:]), be.Uint32(head[12:])
		if be.Uint64(head[:]) != nbdOptMagic || length > 4096 {
			return errors.New("nbd: not an option")
		}
		if _, err := io.CopyN(io.Discard, conn, int64(length)); err != nil {
			return err
		}
		reply := func(kind uint32, data []byte) error {
			b := be.AppendUint64(nil, nbdReplyMagic)
			b = be.AppendUint32(b, option)
			b = be.AppendUint32(b, kind)
			b = be.AppendUint32(b, uint32(len(data)))
			_, err := conn.Write(append(b, data...))
			return err
		}
		var err error
		switch option {
		case nbdOptExport:
			if be.Uint32(clientFlags[:])&nbdNoZeroes == 0 {
				export = append(export, make([]byte, 124)...)
			}
			_, err = conn.Write(export)
			return err
		case nbdOptGo, nbdOptInfo:
			const infoExport = 0
			err = reply(nbdInfo, slices.Concat(be.AppendUint16(nil, infoExport), export))
			if err == nil {
				err = reply(nbdAck, nil)
			}
			if err == nil && option == nbdOptGo {
				return nil
			}
		case nbdOptAbort:
			_ = reply(nbdAck, nil)
			return errors.New("nbd: the client gave up")
		default:
			err = reply(nbdUnsupported, nil)
		}
		if err != nil {
			return fmt.Errorf("nbd: %w", err)
		}
	}
}
