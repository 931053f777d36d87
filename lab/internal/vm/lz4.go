package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var errLZ4 = errors.New("damaged lz4 data")

// unpackKernel takes the ELF kernel out of a bzImage that holds it packed
// with LZ4, so that the machine need not unpack it at every boot: emulated,
// that is most of a second. Where it lies stands in the boot protocol's header
// (Documentation/arch/x86/boot.rst).
func unpackKernel(image []byte) ([]byte, error) {
	const setupSects, magic, payloadOffset, payloadLength = 0x1f1, 0x202, 0x248, 0x24c
	if len(image) < payloadLength+4 || string(image[magic:magic+4]) != "HdrS" {
		return nil, errors.New("not a kernel image (bzImage)")
	}
	start := (int(image[setupSects])+1)*512 + int(binary.LittleEndian.Uint32(image[payloadOffset:]))
	end := start + int(binary.LittleEndian.Uint32(image[payloadLength:]))
	if start < 0 || end > len(image) || start > end {
		return nil, errors.New("damaged kernel image")
	}
	packed, ok := bytes.CutPrefix(image[start:end], []byte{0x02, 0x21, 0x4c, 0x18})
	if !ok {
		return nil, errors.New("the kernel is not packed with lz4")
	}
	// The legacy frame: blocks of at most 8 MiB, each with its packed size
	// in front; behind the last the kernel puts the unpacked size.
	var out []byte
	for len(packed) > 4 {
		size := int(binary.LittleEndian.Uint32(packed))
		packed = packed[4:]
		if size > len(packed) {
			return nil, errLZ4
		}
		block, err := unpackBlock(packed[:size])
		if err != nil {
			return nil, err
		}
		out = append(out, block...)
		packed = packed[size:]
	}
	if len(packed) == 4 && int(binary.LittleEndian.Uint32(packed)) != len(out) {
		return nil, fmt.Errorf("%w: %d bytes", errLZ4, len(out))
	}
	return out, nil
}

// maxBlock is what a block of the legacy frame may hold.
const maxBlock = 8 << 20

// unpackBlock unpacks one LZ4 block: literals, then a copy of what was
// unpacked before, again and again.
func unpackBlock(src []byte) ([]byte, error) {
	dst := make([]byte, 0, maxBlock)
	// length reads the rest of a length whose four bits were all ones.
	length := func(n int) (int, bool) {
		for n >= 15 {
			if len(src) == 0 {
				return 0, false
			}
			more := int(src[0])
			src = src[1:]
			n += more
			if more < 255 {
				break
			}
		}
		return n, n <= maxBlock
	}
	for len(src) > 0 {
		token := int(src[0])
		src = src[1:]
		literals, ok := length(token >> 4)
		if !ok || literals > len(src) || len(dst)+literals > maxBlock {
			return nil, errLZ4
		}
		dst = append(dst, src[:literals]...)
		if src = src[literals:]; len(src) == 0 {
			return dst, nil // the last sequence has no copy
		}
		if len(src) < 2 {
			return nil, errLZ4
		}
		back := int(binary.LittleEndian.Uint16(src))
		src = src[2:]
		n, ok := length(token & 15)
		n += 4
		if !ok || back == 0 || back > len(dst) || len(dst)+n > maxBlock {
			return nil, errLZ4
		}
		for at := len(dst) - back; n > 0; at, n = at+1, n-1 { // it may overlap itself
			dst = append(dst, dst[at])
		}
	}
	return nil, errLZ4
}
