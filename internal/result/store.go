package result

import (
	"bufio"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"
	"strings"
	"time"
)

// storeVersion changes when what is stored means something else; that other fields are
// stored shows by itself.
const storeVersion = "perflab.digest/2"

// ErrOtherDigest says that what was stored is of other calls, of other options or of
// another version: the calls are to be read again.
var ErrOtherDigest = errors.New("it is of other calls, other options or another version")

// stored is the first part of a file: what it is of, and what fits into memory twice.
// After it come the calls that were kept, a line each, and the long lists.
type stored struct {
	Version, Shape, Of, Options string
	Held                        held
	Kept                        int
	Flows                       []flow // without their lists
	Lengths                     []int  // of those
}

// Save writes what is held, for Load. of names the calls that it is of.
func (x *Accumulator) Save(w io.Writer, of string) error {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	bw := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	s := stored{Version: storeVersion, Shape: shapeOf(), Of: of, Options: x.optionsKey(), Held: x.held, Kept: len(x.kept)}
	if x.Large != nil {
		large := *x.Large
		s.Held.Large = &large
		if large.VLLM != nil {
			large.VLLM = new(*large.VLLM)
			large.VLLM.Flow = nil
		}
		large.Flow = nil
	}
	for _, f := range x.flows() {
		bare := *f
		bare.Tokens, bare.Bins = nil, nil
		s.Flows, s.Lengths = append(s.Flows, bare), append(s.Lengths, len(f.Tokens), len(f.Bins))
	}
	if err := gob.NewEncoder(bw).Encode(s); err != nil {
		return fmt.Errorf("encode what is known of the calls: %w", err)
	}
	var line []byte
	for i := range x.kept {
		line = append(x.kept[i].AppendJSON(line[:0]), '\n')
		bw.Write(line) // Flush has the error of all writes
	}
	for _, f := range x.flows() {
		for _, v := range f.Tokens {
			bw.Write(binary.LittleEndian.AppendUint32(bw.AvailableBuffer(), math.Float32bits(v)))
		}
		for i := range f.Bins {
			bw.Write(f.Bins[i].append(bw.AvailableBuffer()))
		}
	}
	if err := bw.Flush(); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// Load makes an accumulator of what Save wrote for the same header, options and calls;
// ErrOtherDigest where they are not the same.
func Load(r io.Reader, h Header, o Options, of string) (*Accumulator, error) {
	x, err := NewAccumulator(h, o)
	if err != nil {
		return nil, err
	}
	br := bufio.NewReaderSize(r, 1<<16)
	sum := &summed{r: br}
	var s stored
	switch err := gob.NewDecoder(sum).Decode(&s); {
	case err != nil:
		return nil, fmt.Errorf("%w (%v)", ErrOtherDigest, err)
	case s.Version != storeVersion || s.Shape != shapeOf() || s.Of != of || s.Options != x.optionsKey():
		return nil, ErrOtherDigest
	case len(s.Lengths) != 2*len(s.Flows) || len(s.Flows) > 2 || s.Held.Large == nil:
		return nil, errors.New("what is known of the calls is damaged")
	}
	x.held = s.Held
	x.Large.restore()
	if err := x.loadKept(sum, s.Kept); err != nil {
		return nil, err
	}
	for i := range s.Flows {
		f := &s.Flows[i]
		if err := f.load(sum, s.Lengths[2*i], s.Lengths[2*i+1]); err != nil {
			return nil, err
		}
		if i == 0 {
			x.Large.Flow = f
		} else if x.Large.VLLM != nil {
			x.Large.VLLM.Flow = f
		}
	}
	want := sum.sum
	var end [4]byte
	if _, err := io.ReadFull(br, end[:]); err != nil || binary.BigEndian.Uint32(end[:]) != want {
		return nil, errors.New("what is known of the calls is damaged: its checksum is another")
	}
	return x, nil
}

// restore makes what gob leaves out because it is empty.
func (l *large) restore() {
	if l.Gaps == nil {
		l.Gaps = &pooled{}
	}
	if l.VLLM != nil && l.VLLM.Gaps == nil {
		l.VLLM.Gaps = &pooled{}
	}
}

// summed reads and sums up what was read. It is an io.ByteReader, so that gob reads no
// more than it needs.
type summed struct {
	r   *bufio.Reader
	sum uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), p[:n])
	return n, err
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), []byte{b})
	}
	return b, err
}

// ReadLine reads up to the end of a line.
func (s *summed) readLine(line []byte) ([]byte, error) {
	for {
		part, err := s.r.ReadSlice('\n')
		s.sum = crc32.Update(s.sum, crc32.MakeTable(crc32.Castagnoli), part)
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (x *Accumulator) loadKept(r *summed, n int) error {
	var d callDecoder
	var line []byte
	for range n {
		var err error
		if line, err = r.readLine(line[:0]); err != nil {
			return fmt.Errorf("read the calls that were kept: %w", err)
		}
		var c Call
		if err := d.decode(line, &c); err != nil {
			return fmt.Errorf("read a call that was kept: %w", err)
		}
		x.kept = append(x.kept, c)
	}
	return nil
}

// flows are the courses of the run that are held.
func (x *Accumulator) flows() []*flow {
	switch {
	case x.Large == nil:
		return nil
	case x.Large.VLLM == nil:
		return []*flow{x.Large.Flow}
	}
	return []*flow{x.Large.Flow, x.Large.VLLM.Flow}
}

// binBytes is what a bin takes in a file.
const binBytes = 5*4 + 5*8

func (b *flowBin) append(to []byte) []byte {
	for _, v := range [...]uint32{b.Sent, b.Ended, b.Due, b.FailedFrom, b.FailedTo} {
		to = binary.LittleEndian.AppendUint32(to, v)
	}
	for _, v := range [...]uint64{math.Float64bits(b.Prompts), uint64(b.Took), uint64(b.Spent.Waiting), uint64(b.Spent.Late), uint64(b.Spent.Server)} {
		to = binary.LittleEndian.AppendUint64(to, v)
	}
	return to
}

func (b *flowBin) read(p []byte) {
	for i, v := range [...]*uint32{&b.Sent, &b.Ended, &b.Due, &b.FailedFrom, &b.FailedTo} {
		*v = binary.LittleEndian.Uint32(p[4*i:])
	}
	b.Prompts = math.Float64frombits(binary.LittleEndian.Uint64(p[20:]))
	for i, v := range [...]*time.Duration{&b.Took, &b.Spent.Waiting, &b.Spent.Late, &b.Spent.Server} {
		*v = time.Duration(binary.LittleEndian.Uint64(p[28+8*i:]))
	}
}

// load reads the lists.
func (f *flow) load(r io.Reader, tokens, bins int) error {
	if tokens < 0 || tokens > mostFine+1 || bins < 0 || bins > mostCoarse+1 || f.Fine < 1 || f.Coarse < 1 {
		return errors.New("what is known of the calls is damaged")
	}
	f.Tokens, f.Bins = make([]float32, tokens), make([]flowBin, bins)
	buf := make([]byte, 1024*binBytes)
	for from := 0; from < tokens; {
		p := buf[:min(len(buf)/4, tokens-from)*4]
		if _, err := io.ReadFull(r, p); err != nil {
			return fmt.Errorf("read bins: %w", err)
		}
		for ; len(p) > 0; p, from = p[4:], from+1 {
			f.Tokens[from] = math.Float32frombits(binary.LittleEndian.Uint32(p))
		}
	}
	for from := 0; from < bins; {
		p := buf[:min(1024, bins-from)*binBytes]
		if _, err := io.ReadFull(r, p); err != nil {
			return fmt.Errorf("read bins: %w", err)
		}
		for ; len(p) > 0; p, from = p[binBytes:], from+1 {
			f.Bins[from].read(p)
		}
	}
	return nil
}

// optionsKey names what of the header and the options is in what is held.
func (x *Accumulator) optionsKey() string {
	return fmt.Sprintf("limit %d, goodput %v, definitions %q", x.header.Limit, x.options.Goodput, x.options.Compat)
}

// shapeOf names the fields of what is stored, with their types: another version of
// perflab, which counts something else, must not take zeros for counts.
func shapeOf() string {
	var b strings.Builder
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for f := range t.Fields() {
				if f.IsExported() || f.Anonymous {
					fmt.Fprintf(&b, "%s %s;", f.Name, f.Type)
					walk(f.Type)
				}
			}
		}
	}
	walk(reflect.TypeFor[held]())
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(b.String())))
}
