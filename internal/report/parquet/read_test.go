package parquet

import (
	"bytes"
	"slices"
	"strings"
	"testing"

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
