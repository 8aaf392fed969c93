package result

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStore: what is stored of a long run gives the same figures and the same calls,
// and is refused for other calls, other options and where a byte is another.
func TestStore(t *testing.T) {
	h := Header{Requests: 1500, Limit: 8}
	calls := randomCalls(7, 1500)
	for name, x := range map[string]struct {
		compat string
		rows   int
	}{"rows": {"", 1e6}, "bins": {"", 500}, "vllm": {VLLM, 1e6}, "vllm bins": {VLLM, 500}} {
		t.Run(name, func(t *testing.T) {
			o := Options{Compat: x.compat}
			acc, err := NewLimited(h, o, Limits{Bytes: 100_000, Some: 50_000, Rows: x.rows})
			if err != nil {
				t.Fatal(err)
			}
			for i := range calls {
				acc.Add(&calls[i])
			}
			var b bytes.Buffer
			if err := acc.Save(&b, "these"); err != nil {
				t.Fatal(err)
			}
			again, err := Load(bytes.NewReader(b.Bytes()), h, o, "these")
			if err != nil {
				t.Fatal(err)
			}
			sameStored(t, acc, again, o)
			for what, f := range map[string]func() error{
				"other calls": func() error { _, err := Load(bytes.NewReader(b.Bytes()), h, o, "those"); return err },
				"other options": func() error {
					_, err := Load(bytes.NewReader(b.Bytes()), Header{Limit: 9}, o, "these")
					return err
				},
			} {
				if err := f(); !errors.Is(err, ErrOtherDigest) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for at := 0; at < b.Len(); at += 1 + b.Len()/5 {
				bad := bytes.Clone(b.Bytes())
				bad[at] ^= 4
				if _, err := Load(bytes.NewReader(bad), h, o, "these"); err == nil {
					t.Errorf("byte %d of %d is another and nobody noticed", at, b.Len())
				}
			}
			if _, err := Load(bytes.NewReader(b.Bytes()[:b.Len()-9]), h, o, "these"); err == nil {
				t.Error("a cut one was taken")
			}
		})
	}
}

func sameStored(t *testing.T, acc, again *Accumulator, o Options) {
	t.Helper()
	a, err := acc.Analyze(&Client{}, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Analyze(&Client{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a.Summary(), b.Summary()); d != "" {
		t.Errorf("another summary:\n%s", d)
	}
	if d := cmp.Diff(a.Tally, b.Tally); d != "" {
		t.Errorf("another tally:\n%s", d)
	}
	if d := cmp.Diff(a.Pace(), b.Pace()); d != "" {
		t.Errorf("another pace:\n%s", d)
	}
	x, every := acc.Kept()
	y, n := again.Kept()
	if d := cmp.Diff(x, y); d != "" || every != n {
		t.Errorf("one call in %d of %d is kept:\n%s", n, every, d)
	}
}
