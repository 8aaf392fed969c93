package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/interop"
)

// studies returns the published studies, and skips the test where they are
// not.
func studies(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("PERFLAB_SHARED")
	for up := ".."; dir == "" && len(up) < 40; up += "/.." {
		if _, err := os.Stat(filepath.Join(up, "shared", "published")); err == nil {
			dir = filepath.Join(up, "shared")
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "published", "*.txt"))
	if err != nil || dir == "" || len(files) == 0 {
		t.Skip("the published studies are not here: set PERFLAB_SHARED to read them")
	}
	return files
}

// TestClaimsPublished expects what a reading of four published studies found
// wrong with their claims, and no error besides.
func TestClaimsPublished(t *testing.T) {
	want := map[string][]string{ // by the number that begins the file's name: line, type, and what the recomputed value has
		"000": {
			"161 claim-on-broken-figure 3.56x",         // H2
			"514 baseline-mixed 1.08x",                 // H8
			"379 within-noise 2 %",                     // H12
			"15 hidden-cost +56 %", "16 hidden-cost +", // H15
			"17 hidden-cost +",
		},
		"001": {
			"679 claim-on-cached-ttft ms", "681 claim-on-cached-ttft ms", "683 claim-on-cached-ttft", // S1, S2
			"679 selective-citation 5341.94",  // S3
			"1 count-contradiction 8",         // S4
			"677 totals-across-workloads 999", // S8
			"679 totals-across-workloads 519", // S8
			"166 missing-cell 8 of 9",         // S9
			"689 size-claim 5.1B",             // S10
			"687 bound-claim ms",              // S11
		},
		"002": {
			"19 replicas-not-measured -20.4 %", "20 replicas-not-measured -33.4 %", "21 replicas-not-measured -42.9 %", // A1
			"22 replicas-not-measured -43.3 %", "23 replicas-not-measured -37.9 %",
			"12 recommended-underuses-gpus 3019.19",                                                              // A2
			"19 baseline-not-best +30.3 %",                                                                       // A3
			"321 baseline-mixed -20.4 %",                                                                         // A4
			"322 option-without-run ",                                                                            // A6
			"323 within-noise +0.2 %",                                                                            // A7
			"23 unequal-work 1.013",                                                                              // A8
			"123 unequal-work 1.0083",                                                                            // A9
			"19 hidden-cost Mean TPOT +22 %", "20 hidden-cost Mean TPOT +71 %", "21 hidden-cost Mean TPOT +79 %", // A10
			"22 hidden-cost Mean TPOT +69 %", "23 hidden-cost Mean TPOT +61 %",
			"23 totals-across-workloads 10.69", // A17
		},
		"003": {
			"22 percentage-wrong +46.8 %",                                                                     // B1
			"255 baseline-mixed +136.9 %",                                                                     // B2
			"256 baseline-mixed ",                                                                             // B2, B5
			"22 unequal-work 1.020",                                                                           // B6
			"122 unequal-work 1.0022",                                                                         // B7
			"18 hidden-cost +80 %", "20 hidden-cost +158 %", "21 hidden-cost +108 %", "22 hidden-cost +561 %", // B8
			"22 totals-across-workloads 9.93", // B15, B16
		},
	}
	files := studies(t)
	if len(files) != len(want) {
		t.Fatalf("%d published studies, want %d", len(files), len(want))
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := interop.Read(filepath.Base(name), data)
		number, _, _ := strings.Cut(f.Name, "_")
		got := claims(&f, Options{})
		for _, w := range want[number] {
			line, rest, _ := strings.Cut(w, " ")
			kind, value, _ := strings.Cut(rest, " ")
			if !slices.ContainsFunc(got, func(x Finding) bool {
				return strconv.Itoa(x.Place.Line) == line && x.Type == kind && strings.Contains(x.Expected, value)
			}) {
				t.Errorf("%s: missing: %s", f.Name, w)
			}
		}
		for _, x := range got {
			if x.Severity == Error && x.Type != "replicas-not-measured" && x.Expected != "+46.8 %" {
				t.Errorf("%s: an error that is none: %s %s", x.Place, x.Type, x.Text)
			}
		}
	}
}

// FuzzClaims holds that no document makes the checks of claims panic, and that
// every finding has a place and a sentence.
func FuzzClaims(f *testing.F) {
	f.Add(twoRuns(gains("Total TPS: 6000.00x2 (+10.7%)<br>Mean TPOT(ms): 40.00"), "Result: vLLM (4000.00 tok/s) > FP8 (6000.00 tok/s)\n"))
	f.Add(twoRuns("| Option | Gain |\n|---|---|\n| A && B | +1% |\n", "- Summary: `A` TPOT = 1 ms vs 0 ms, reduced by 1 ms (-0x faster).\n"))
	f.Add(brokenTPOT("2.00", "0.10"))
	f.Add("# 6x\n\n| a | b (ms) |\n|-|\n| 1 | 2 (+3%) | 4\n\nTTFT ~9k tok/s × 2 from 1 to ≈2ms; −3% 1.00x2.5")
	f.Fuzz(func(t *testing.T, text string) {
		file := interop.Read("x.md", []byte(text))
		if file.Doc == nil {
			return
		}
		for _, x := range claims(&file, Options{}) {
			if x.Place.Line < 1 || x.Text == "" || x.Severity.rank() < 0 {
				t.Errorf("%+v", x)
			}
		}
	})
}
