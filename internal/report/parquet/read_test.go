package parquet

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"

	"perflab/internal/result"
)

func TestReadRefuses(t *testing.T) {
	good := write(t, result.Header{Model: "m"}, []result.Call{full()})
	var other bytes.Buffer
	if err := pq.Write(&other, []struct{ A int }{{1}}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "read the calls' Parquet file"},
		{"cut", good[:len(good)-20], "read the calls' Parquet file"},
		{"text", []byte(strings.Repeat("no parquet\n", 20)), "read the calls' Parquet file"},
		{"another's", other.Bytes(), "has no calls of perflab"},
		{"a footer that is longer than the file", append(slices.Clone(good[:len(good)-8]), "\xff\xff\xff\x7fPAR1"...), "a footer of 2147483647 bytes"},
	} {
		if _, calls, err := Read(bytes.NewReader(test.file), int64(len(test.file))); err == nil || !strings.Contains(err.Error(), test.want) || calls != nil {
			t.Errorf("%s: %d calls and %v", test.name, len(calls), err)
		}
	}
}

// Whichever byte of a file is changed, there is an error or an answer and no
// panic.
func TestReadDamaged(t *testing.T) {
	calls := []result.Call{full(), {Index: 1, End: 5, Class: result.Connect, Error: "refused"}, full()}
	good := write(t, result.Header{Model: "m"}, calls)
	step := max(1, len(good)/30)
	wrong := 0
	for i := 0; i < len(good); i += step {
		bad := slices.Clone(good)
		bad[i] ^= 0xff
		if _, _, err := Read(bytes.NewReader(bad), int64(len(bad))); err != nil {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no damage was found")
	}
}

func FuzzRead(f *testing.F) {
	var good bytes.Buffer
	if err := Write(&good, result.Header{Model: "m"}, slices.Values([]result.Call{full()})); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, calls, err := Read(bytes.NewReader(file), int64(len(file)))
		if err != nil && calls != nil {
			t.Errorf("%d calls and %v", len(calls), err)
		}
	})
}

// earlierRow is the columns that the first files had and a call cannot do without.
type earlierRow struct {
	Index       int64   `parquet:"index,delta"`
	Target      int32   `parquet:"target"`
	Due         int64   `parquet:"due_ns,delta"`
	Ready       int64   `parquet:"ready_ns,delta"`
	Sent        int64   `parquet:"sent_ns,delta"`
	End         int64   `parquet:"end_ns,delta"`
	Simulated   bool    `parquet:"simulated"`
	ChunkNS     []int64 `parquet:"chunk_ns,list" parquet-element:",delta"`
	ChunkTokens []int32 `parquet:"chunk_tokens,list" parquet-element:",delta"`
}

// A file without the columns that were added since reads as calls without those facts.
func TestReadEarlierFile(t *testing.T) {
	var b bytes.Buffer
	w := pq.NewGenericWriter[earlierRow](&b, pq.KeyValueMetadata(keySchema, Schema), pq.KeyValueMetadata(keyHeader, "{}"))
	if _, err := w.Write([]earlierRow{{Index: 1, Sent: 2, End: 9, ChunkNS: []int64{5, 7}, ChunkTokens: []int32{1, 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, calls, err := Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	want := []result.Call{{Index: 1, Sent: 2, End: 9, Chunks: []result.Chunk{{At: 5, Tokens: 1}, {At: 7, Tokens: 1}}}}
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("-want +read\n%s", d)
	}
}
