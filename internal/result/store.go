package result

import (
	"bufio"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"strings"

	"perflab/internal/timebins"
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
	Flows                       []timebins.Course // without their lists
	Lengths                     []int             // of those
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
		bare, tokens, bins := f.Bare()
		s.Flows, s.Lengths = append(s.Flows, bare), append(s.Lengths, tokens, bins)
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
		f.WriteLists(bw)
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
		if err := f.ReadLists(sum, s.Lengths[2*i], s.Lengths[2*i+1]); err != nil {
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
func (x *Accumulator) flows() []*timebins.Course {
	switch {
	case x.Large == nil:
		return nil
	case x.Large.VLLM == nil:
		return []*timebins.Course{x.Large.Flow}
	}
	return []*timebins.Course{x.Large.Flow, x.Large.VLLM.Flow}
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
