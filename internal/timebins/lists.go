package timebins

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// binBytes is what a bin takes in a file.
const binBytes = 5*4 + 5*8

// Bare returns the course without its lists, and how long these are: ReadLists of the one gives what WriteLists
// of the other wrote.
func (c *Course) Bare() (bare Course, tokens, bins int) {
	bare = *c
	bare.Output, bare.Bins = nil, nil
	return bare, len(c.Output), len(c.Bins)
}

// WriteLists writes the lists; the error is that of a later Flush.
func (c *Course) WriteLists(w *bufio.Writer) {
	for _, v := range c.Output {
		w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), math.Float32bits(v)))
	}
	for i := range c.Bins {
		w.Write(c.Bins[i].append(w.AvailableBuffer()))
	}
}

// ReadLists reads lists of these lengths.
func (c *Course) ReadLists(r io.Reader, tokens, bins int) error {
	if tokens < 0 || tokens > mostFine+1 || bins < 0 || bins > mostCoarse+1 || !divides(c.Fine, fineBins) || !divides(c.Coarse, coarseBins) {
		return errors.New("bins of time are damaged")
	}
	c.Output, c.Bins = make([]float32, tokens), make([]Bin, bins)
	buf := make([]byte, 1024*binBytes)
	for from := 0; from < tokens; {
		p := buf[:min(len(buf)/4, tokens-from)*4]
		if _, err := io.ReadFull(r, p); err != nil {
			return fmt.Errorf("read bins: %w", err)
		}
		for ; len(p) > 0; p, from = p[4:], from+1 {
			c.Output[from] = math.Float32frombits(binary.LittleEndian.Uint32(p))
		}
	}
	for from := 0; from < bins; {
		p := buf[:min(1024, bins-from)*binBytes]
		if _, err := io.ReadFull(r, p); err != nil {
			return fmt.Errorf("read bins: %w", err)
		}
		for ; len(p) > 0; p, from = p[binBytes:], from+1 {
			c.Bins[from].read(p)
		}
	}
	return nil
}

func (b *Bin) append(to []byte) []byte {
	for _, v := range [...]uint32{b.Sent, b.Ended, b.Due, b.FailedFrom, b.FailedTo} {
		to = binary.LittleEndian.AppendUint32(to, v)
	}
	for _, v := range [...]uint64{math.Float64bits(b.Prompts), uint64(b.Took), uint64(b.Spent.Waiting), uint64(b.Spent.Late), uint64(b.Spent.Server)} {
		to = binary.LittleEndian.AppendUint64(to, v)
	}
	return to
}

func (b *Bin) read(p []byte) {
	for i, v := range [...]*uint32{&b.Sent, &b.Ended, &b.Due, &b.FailedFrom, &b.FailedTo} {
		*v = binary.LittleEndian.Uint32(p[4*i:])
	}
	b.Prompts = math.Float64frombits(binary.LittleEndian.Uint64(p[20:]))
	for i, v := range [...]*time.Duration{&b.Took, &b.Spent.Waiting, &b.Spent.Late, &b.Spent.Server} {
		*v = time.Duration(binary.LittleEndian.Uint64(p[28+8*i:]))
	}
}

// divides reports whether so many bins a second are what those of a new course may have become.
func divides(perSecond, of int) bool { return perSecond > 0 && of%perSecond == 0 }
