package ship

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"perflab/internal/result"

	"github.com/klauspost/compress/zstd"
)

// A batch is a header and the calls as calls.jsonl has them, compressed by zstd:
//
//	magic "PLC1" | number, 8 bytes | calls, 4 | bytes of the lines, 4 | bytes that follow, 4 | CRC-32C of all but itself, 4
//
// all little-endian. One of no lines says that the batch of this number is lost.
const (
	magic      = "PLC1"
	headerSize = 28
	sumAt      = 24
)

// Bounds of what a batch may hold. The call of a million chunks, the most that is
// believed of one, has 20 MiB of lines.
const (
	mostCalls   = 4096
	mostRaw     = 32 << 20
	mostPacked  = mostRaw + 1<<20
	mostNumbers = 4 << 20 // by the commas between them: a number of two bytes takes 16 and more in memory
)

// fits reports whether lines can be those of a batch.
func fits(lines []byte) bool {
	return len(lines) <= mostRaw && (len(lines) <= mostNumbers || bytes.Count(lines, []byte{','}) <= mostNumbers)
}

// header is what stands before the calls of a batch.
type header struct {
	seq    uint64
	calls  int
	raw    int // bytes of the lines
	packed int // of what follows the header
}

// lost reports whether the batch says that its number does not come.
func (h header) lost() bool { return h.raw == 0 }

// sum is the CRC-32C of a batch, for which processors have an instruction.
func sum(header, packed []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, header[:sumAt]), table, packed)
}

// put writes the header before a batch's bytes.
func (h header) put(batch []byte) {
	copy(batch, magic)
	binary.LittleEndian.PutUint64(batch[4:], h.seq)
	binary.LittleEndian.PutUint32(batch[12:], uint32(h.calls))
	binary.LittleEndian.PutUint32(batch[16:], uint32(h.raw))
	binary.LittleEndian.PutUint32(batch[20:], uint32(h.packed))
	binary.LittleEndian.PutUint32(batch[sumAt:], sum(batch, batch[headerSize:]))
}

// parse reads a header without a look at what follows.
func parse(b []byte) (header, error) {
	if len(b) < headerSize || string(b[:4]) != magic {
		return header{}, errors.New("it does not begin as a batch")
	}
	calls, raw, packed := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
	if calls > mostCalls || raw > mostRaw || packed > mostPacked || (raw == 0) != (packed == 0) || (raw == 0) != (calls == 0) {
		return header{}, fmt.Errorf("%d calls of %d bytes in %d are no batch", calls, raw, packed)
	}
	return header{seq: binary.LittleEndian.Uint64(b[4:]), calls: int(calls), raw: int(raw), packed: int(packed)}, nil
}

// check reads the header of a batch that must be whole and have this number.
func check(seq uint64, batch []byte) (header, error) {
	h, err := parse(batch)
	switch {
	case err != nil:
		return h, err
	case len(batch) != headerSize+h.packed:
		return h, fmt.Errorf("it has %d bytes, and %d were sent", len(batch), headerSize+h.packed)
	case sum(batch, batch[headerSize:]) != binary.LittleEndian.Uint32(batch[sumAt:]):
		return h, errors.New("its checksum is wrong")
	case h.seq != seq:
		return h, fmt.Errorf("it has the number %d", h.seq)
	}
	return h, nil
}

// lostBatch says that a number does not come.
func lostBatch(seq uint64) []byte {
	b := make([]byte, headerSize)
	header{seq: seq}.put(b)
	return b
}

// packer makes batches of calls.
type packer struct {
	zstd  *zstd.Encoder
	lines []byte
	calls int
	batch []byte
}

func newPacker() *packer {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return &packer{zstd: e}
}

func (p *packer) close() { _ = p.zstd.Close() } // it writes to nobody

// add appends the line of a call.
func (p *packer) add(c *result.Call) {
	p.lines = append(c.AppendJSON(p.lines), '\n')
	p.calls++
}

// undo takes the last line off, which began there, and returns it.
func (p *packer) undo(begin int) []byte {
	line := bytes.Clone(p.lines[begin:])
	p.lines = p.lines[:begin]
	p.calls--
	return line
}

// put appends a line.
func (p *packer) put(line []byte) {
	p.lines = append(p.lines, line...)
	p.calls++
}

// pack ends the batch, whose bytes are good until the next one.
func (p *packer) pack(seq uint64) (calls int, batch []byte) {
	if cap(p.batch) < headerSize || cap(p.batch) > 4*aimed { // one huge call holds no memory for ever
		p.batch = make([]byte, headerSize, aimed)
	}
	p.batch = p.zstd.EncodeAll(p.lines, p.batch[:headerSize])
	h := header{seq: seq, calls: p.calls, raw: len(p.lines), packed: len(p.batch) - headerSize}
	h.put(p.batch)
	if p.lines, p.calls = p.lines[:0], 0; cap(p.lines) > 4*aimed {
		p.lines = nil
	}
	return h.calls, p.batch
}

// unpacker makes calls of batches.
type unpacker struct {
	zstd  *zstd.Decoder
	lines []byte
}

func newUnpacker() *unpacker {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(mostRaw), zstd.WithDecoderMaxWindow(mostRaw))
	if err != nil {
		panic(err) // the options are constants
	}
	return &unpacker{zstd: d}
}

// unpack returns the calls of a batch whose header was checked.
func (u *unpacker) unpack(h header, batch []byte) ([]result.Call, error) {
	if cap(u.lines) < h.raw {
		u.lines = make([]byte, 0, h.raw)
	}
	lines, err := u.zstd.DecodeAll(batch[headerSize:], u.lines[:0:h.raw])
	if err != nil {
		return nil, fmt.Errorf("uncompress it: %w", err)
	}
	if cap(u.lines) > 4*aimed {
		u.lines = nil
	}
	if len(lines) != h.raw {
		return nil, fmt.Errorf("it has %d bytes of calls, and %d were sent", len(lines), h.raw)
	}
	if !fits(lines) {
		return nil, fmt.Errorf("it has more than %d numbers", mostNumbers)
	}
	calls := make([]result.Call, 0, h.calls)
	for c, err := range result.ReadCalls(bytes.NewReader(lines)) {
		if err != nil {
			return nil, err
		}
		if len(calls) == h.calls {
			return nil, fmt.Errorf("it has more than %d calls", h.calls)
		}
		calls = append(calls, c)
	}
	if len(calls) != h.calls {
		return nil, fmt.Errorf("it has %d calls, and %d were sent", len(calls), h.calls)
	}
	return calls, nil
}
