package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perflab/internal/interop"
)

// shared returns the directory of reference facts, and skips the test where it
// is not there.
func shared(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("PERFLAB_SHARED"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "shared", "reference", "seed_blocks.json")); err == nil {
			return filepath.Join(dir, "shared")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skip("the published studies are not here: set PERFLAB_SHARED to read them")
		}
		dir = parent
	}
}

// blocksOf is which blocks of a study have which findings: all of these types
// on these, and on no other of the study.
type blocksOf map[string]string

// The certain findings on single blocks of the four studies, each type on
// exactly the blocks that have it.
var publishedFindings = map[string]blocksOf{
	"h200": {
		"latency-identity":       "01 03-18", // the latency stands, TPOT and ITL do not
		"zero-median":            "01 03-18",
		"decode-beyond-hardware": "01 03-18",
		"peak-inverse-gap":       "01 03-10 13-18",
		"peak-beyond-hardware":   "02 11 12",
		"tpot-includes-first":    "01-18",
		"throughput-window":      "01-18",
		"offered-rate-missed":    "02 17 18",
		"first-token-stall":      "06-08 10 13 14 16",
	},
	"spark": {
		"prefix-cache-suspected": "04 07 15 18",
		"prefix-cache-likely":    "01 12",
		"few-samples":            "01 02 04 05 07 08 09 10 12 13 15 16 18 19 21 22 24 25",
		"peak-buckets":           "09 15",
		"short-inputs":           "21-26",
	},
	"a100": {
		"short-outputs": "08 09 10 12 13 14",
		"short-inputs":  "09-11 13-15",
		"ingestion":     "11 15",
		"mostly-prompt": "08 12",
	},
	"h100": {
		"cache-starved": "01-08 10-12",
		"short-outputs": "06 10",
		"short-inputs":  "07-09 11-13",
		"ingestion":     "09",
		"mostly-prompt": "06 10",
	},
}

func TestPublishedBlocks(t *testing.T) {
	dir := shared(t)
	data, err := os.ReadFile(filepath.Join(dir, "reference", "seed_blocks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var refs struct {
		Blocks []struct {
			ID, Seed, Doc string
			Lines         [2]int
		}
	}
	if err := json.Unmarshal(data, &refs); err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string][]string{} // study, type, blocks
	for _, ref := range refs.Blocks {
		if got[ref.Doc] != nil {
			continue
		}
		got[ref.Doc] = map[string][]string{}
		text, err := os.ReadFile(filepath.Join(dir, "published", ref.Seed))
		if err != nil {
			t.Fatal(err)
		}
		f := interop.Read(ref.Seed, text)
		for _, found := range Files([]interop.File{f}, Options{}) {
			for _, one := range append([]Finding{found}, found.Also...) {
				if one.Run == nil {
					continue
				}
				if one.Severity == Error && one.Type != "latency-identity" {
					t.Errorf("%s: %s: %s", one.Place, one.Type, one.Text)
				}
				for _, b := range refs.Blocks {
					if b.Seed == ref.Seed && b.Lines[0] == one.Run.Place.Line {
						_, id, _ := strings.Cut(b.ID, "-")
						got[ref.Doc][one.Type] = append(got[ref.Doc][one.Type], id)
					}
				}
			}
		}
	}
	for study, want := range publishedFindings {
		for kind, blocks := range want {
			have := got[study][kind]
			slices.Sort(have)
			if !slices.Equal(have, idsOf(t, blocks)) {
				t.Errorf("%s: %s on %v, want %s", study, kind, have, blocks)
			}
		}
	}
}

// idsOf expands "01 03-05" to ids.
func idsOf(t *testing.T, ranges string) []string {
	t.Helper()
	var out []string
	for _, r := range strings.Fields(ranges) {
		from, to, ok := strings.Cut(r, "-")
		if !ok {
			to = from
		}
		for i := 0; i < 100; i++ {
			if id := string([]byte{byte('0' + i/10), byte('0' + i%10)}); id >= from && id <= to {
				out = append(out, id)
			}
		}
	}
	return out
}
