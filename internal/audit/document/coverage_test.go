package document

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// finding is what the audit of a published study must say: what a reading of
// the four studies found, by its number there, or "" for what is true besides.
type finding struct {
	ids, study, kind string
	says             string // "words @line,line | words @line": in the text, the recomputed value or the figures
}

// coverage is every finding on the studies, and nothing else is one: H, S, A
// and B are findings on the studies in order, X those across them.
var coverage = []finding{
	{"H1", "000", "latency-identity", "18.73 @113,719 | 12.40 @198 | 12.86 @242 | 12.44 @285 | 12.98 @330 | 12.92 @373 | 12.43 @417 | 12.99 @460 | 10.76 @503,760 | 6.43 @555 | 5.11 @596 | 11.32 @637 | 8.20 @678 | 65.47 @801 | 23.68 @842"},
	{"H2", "000", "claim-on-broken-figure", "3.56x @161 | 1.03x @291"},
	{"H3", "000", "peak-inverse-gap", "1410355.61 @94,700 | 716367.44 @179 | 634473.24 @223 | 2532773.65 @266 | 13119091.07 @311 | 17112760.32 @354 | 10792660.29 @398 | 1595392.00 @441 | 8794775.78 @484,741 | 12576036.09 @618 | 14184016.34 @659 | 4256990.61 @782 | 3898930.48 @823"},
	{"H3", "000", "peak-beyond-hardware", "with BF16 11,929 @136 | 3,846 @536 | 7,128 @577"},
	{"X3", "000", "no-repeats", "16 measurements @86"},
	{"H4", "000", "decode-beyond-hardware", "0.743 @109,194,238,281,326,369,413,456,551,633,715,797 | 0.372 @499,592,674,756 | 0.373 @843"},
	{"H4", "000", "zero-median", "0.00 @114,199,243,286,331,374,418,461,504,556,597,638,679,720,761,802,843"},
	{"H5", "000", "tpot-includes-first", "2.11 @108,714 | 66.66 @150 | 1.43 @193 | 1.35 @237 | 1.59 @280 | 1.65 @325 | 1.56 @368 | 1.51 @412 | 1.60 @455 | 1.41 @498,755 | 0.9 @550 | 0.66 @591 | 1.57 @632 | 0.99 @673 | 8.11 @796 | 2.70 @837"},
	{"X5", "000", "one-factor-search", "5 options @81"},
	{"H6", "000", "throughput-window", "+0.44 % @93,699 | +0.32 % @135 | +1.49 % @178 | +0.81 % @222 | +0.84 % @265,310 | +2.49 % @353 | +0.95 % @397 | +0.83 % @440 | +1.15 % @483,740 | +0.18 % @535 | +0.11 % @576 | +1.23 % @617 | +1.33 % @658 | +0.45 % @781 | +0.73 % @822"},
	{"H7", "000", "offered-rate-missed", "6.72 req/s @134 | 12.38 req/s @780 | 14.36 req/s @821"},
	{"H8", "000", "baseline-mixed", "Cuda Graph && Quantization 1.00x against Quantization (Size 256 0.96x); Max Batch Token && Quantization 0.92x against Quantization (32k 0.92x); Performance Mode && Quantization 0.96x against Quantization; Prefix Cache && Quantization 0.95x against Quantization; Speculative Decoding && Quantization 1.08x against Quantization @514"},
	{"H9", "000", "tail-unstable", "107.55 at line 171 and 4297.33 @303"},
	{"H9", "000", "first-token-stall", "4297.33 @323 | 4772.71 @366 | 4340.84 @410 | 5402.99 @496,753 | 3590.00 @630 | 5977.29 @671"},
	{"H10", "000", "duplicate-block", "692 = 86, 733 = 476 @692"},
	{"H11", "000", "noise-floor", "0.3 % in mean latency, 0.8 % in mean TTFT, 9.9 % in mean TPOT @258"},
	{"H12", "000", "within-noise", "3.82s in both @379"},
	{"H13", "000", "change-not-recorded", "line 171 equal those of line 86 @166"},
	{"H14", "000", "command-not-shell-safe", "method:mtp --speculative-config=num_speculative_tokens:1 @7"},
	{"H15", "000", "hidden-cost", "Median TTFT +56 % @15 | Median TTFT +49 % @16 | Median TTFT +38 % @518"},
	{"H16", "000", "text-contradiction", "draft model @24"},
	{"H17", "000", "compared-under-overload", "6.72 of 8 req/s @128"},
	{"H18", "000", "failures-not-reported", "18 of 18 @86"},
	{"H19", "000", "concurrency-is-peak", "all 18 blocks @88"},
	{"H19 X4", "000", "environment-missing", "the number of devices @29"},
	{"", "000", "command-placeholder", "$target @67"},
	{"S1", "001", "prefix-cache-likely", "144.4 @25 | 59.60 @309"},
	{"S1", "001", "prefix-cache-suspected", "215.3 @102 | 114.6 @179 | 58.62 @384 | 323.1 @461"},
	{"S2", "001", "claim-on-cached-ttft", "146 @679 | 245 @681 | 383 @685 | 384 @685 | 383ms @683"},
	{"X2", "001", "definitions-mixed", "TPOT (decode_per_token, there e2e_per_token_weighted), ITL @12"},
	{"S3", "001", "selective-citation", "5341.94 (+14.4 %, -43 % per node) @679"},
	{"X3", "001", "no-repeats", "26 measurements @12"},
	{"S4", "001", "count-contradiction", "8 nodes @1"},
	{"S5", "001", "flag-without-effect", "so do all 26 blocks @6"},
	{"S6", "001", "few-samples", "83.91 @26 | 2623.26 @50 | 127.74 @103 | 4135.27 @127 | 88.34 @180 | 3841.38 @204 | 41.07 @233 | 1084.12 @257 | 47.08 @310 | 1400.55 @334 | 37.10 @385 | 1462.06 @409 | 224.50 @462 | 8694.79 @486 | 382.88 @539 | 2657.49 @563 | 312.52 @616 | 5023.57 @640"},
	{"S7", "001", "peak-buckets", "85.25 @227 | 71.54 @379"},
	{"S8", "001", "totals-across-workloads", "999 @677 | 519 @679 | 338 @681 | 308 @683 | 172 @687"},
	{"S9", "001", "missing-cell", "has no run of 100 requests @166"},
	{"S10", "001", "size-claim", "69.5B parameters, one of GPT-OSS-120B 5.1B @689"},
	{"S11", "001", "bound-claim", "301 ms at 100 requests is mostly the 216 ms @687"},
	{"S12", "001", "degradation-claim", "171x from its smallest to its largest load, and that of GPT-OSS-120B on 4 nodes 181x @691"},
	{"S13", "001", "command-not-shell-safe", "quotes of print @5"},
	{"S13", "001", "command-placeholder", "M, X, 10.20.0.4 @5"},
	{"S13 X4", "001", "environment-missing", "the engine's version, the driver @1"},
	{"S14", "001", "prompt-length-differs", "1023 tokens @525"},
	{"S14", "001", "short-inputs", "1,024 @529,606 | 10,240 @553,630 | 102,400 @577,654"},
	{"S15", "001", "itl-stalls", "8.28 times @58 | 4.85 times @82,366 | 4.87 times @135 | 6.86 times @212 | 9.41 times @265 | 5.31 times @289 | 8.37 times @342 | 9.97 times @417 | 5.00 times @441 | 6.69 times @494 | 3.45 times @518 | 5.87 times @571 | 4.41 times @595 | 6.68 times @648 | 9.48 times @672"},
	{"S16", "001", "burst", "64.5 % of P99 @48,125 | 47.4 % of P99 @72,508 | 46.7 % of P99 @149 | 61.5 % of P99 @202 | 59.3 % of P99 @255 | 46.9 % of P99 @279 | 62.6 % of P99 @332 | 46.6 % of P99 @356 | 62.1 % of P99 @407 | 45.9 % of P99 @431 | 66.7 % of P99 @484 | 64.4 % of P99 @561 | 44.3 % of P99 @585 | 69.1 % of P99 @638 | 50.0 % of P99 @662"},
	{"A1", "002", "replicas-not-measured", "-20.4 % @19 | -33.4 % @20 | -42.9 % @21 | -43.3 % @22 | -37.9 % @23"},
	{"X1", "002", "workload-mismatch", "217393 tokens in and 196004 out here @90"},
	{"A2", "002", "recommended-underuses-gpus", "3019.19 instead of 3792.50 tok/s (-20.4 %) @12"},
	{"A3", "002", "baseline-not-best", "+30.3 % @19"},
	{"X3", "002", "no-repeats", "15 measurements @90"},
	{"A4", "002", "baseline-mixed", "a multiplication by 2 @321"},
	{"A4 A5", "002", "several-changes", "-1.4 % (3740.89 against 3792.50 tok/s); expert parallelism added (enable-expert-parallel) alone is -6.8 % @158 | layout tp 8 -> tp 4 @193"},
	{"X4", "002", "environment-missing", "driver @45"},
	{"X5", "002", "one-factor-search", "4 options @85"},
	{"A6", "002", "option-without-run", "Attention Backend @322"},
	{"A7", "002", "script-contradicts-block", "line 291 says --max-num-batched-tokens 8192 @260"},
	{"A7", "002", "within-noise", "+0.2 % @323 | -0.5 % @323"},
	{"A8", "002", "short-outputs", "81.9 % @341 | 91.4 % @366 | 99.3 % @391 | 83.0 % @449 | 90.4 % @474 | 99.0 % @499"},
	{"A8 A9", "002", "unequal-work", "0.996 @19 | 0.997 @21 | 0.989 @22 | 1.013 @23 | 1.0083 @123"},
	{"A10", "002", "hidden-cost", "Mean TTFT +21 %, Mean TPOT +22 % @19 | Median TTFT +39 %, Mean TPOT +71 % @20 | Median TTFT +74 %, Mean TPOT +79 % @21 | Mean TTFT +77 %, Mean TPOT +69 % @22 | Median TTFT +62 %, Mean TPOT +61 % @23"},
	{"A11", "002", "ingestion", "46.4 % of the run @423 | 31.5 % of the run @531"},
	{"A12", "002", "itl-zero-gap", "155.16 @431 | 265.87 @539"},
	{"A13", "002", "short-inputs", "2,000,000 @365,473 | 1,000,000 @390,498 | 128,000 @415,523"},
	{"A14", "002", "benchmark-command-missing", "6 of 15 @337"},
	{"A15", "002", "tail-unstable", "448.36 at line 90 and 228.96 at line 163, P99 TPOT (ms) 297.17 at line 198 and 509.56 at line 266, P99 TPOT (ms) 297.17 at line 198 and 561.98 @163"},
	{"A16", "002", "burst", "49.4 % of P99 @101 | 40.7 % of P99 @134 | 47.5 % of P99 @174 | 45.9 % of P99 @209,277 | 45.8 % of P99 @242 | 45.5 % of P99 @302 | 50.5 % of P99 @348 | 49.9 % of P99 @373 | 51.3 % of P99 @398 | 73.6 % of P99 @423 | 50.6 % of P99 @456 | 49.6 % of P99 @481 | 50.3 % of P99 @506 | 66.0 % of P99 @531"},
	{"A17", "002", "totals-across-workloads", "10.69 @23"},
	{"A17", "002", "mostly-prompt", "99.7 % @346,454"},
	{"A18", "002", "mojibake", "line 47 @47"},
	{"A18", "002", "failures-not-reported", "15 of 15 @90"},
	{"", "002", "itl-stalls", "5.78 times @144 | 3.47 times @287"},
	{"B1", "003", "percentage-wrong", "+46.8 % @22"},
	{"B2", "003", "engine-contradicts-heading", "201376 generated tokens equal those of the TensorRT-LLM block at line 226 @187"},
	{"B2", "003", "baseline-mixed", "+136.9 % against 1690.84 @255 | another engine (SGLang, TensorRT-LLM) @256"},
	{"B3 B12 X4", "003", "environment-missing", "the number of devices, the form factor of the H100 @43"},
	{"B4 B9", "003", "cache-starved", "118 sequences @96 | 58 sequences @129 | 94 sequences @162 | 380 sequences @199 | 373 sequences @233 | 1 sequence @277 | 8 sequences @302 | 16 sequences @327 | 4 sequences @385 | 38 sequences @410 | 76 sequences @435"},
	{"B5", "003", "several-changes", "--enable_chunked_prefill added; --max_seq_len 40960 added @221"},
	{"X5", "003", "one-factor-search", "--enable_chunked_prefill, --max_seq_len @84"},
	{"B6", "003", "short-outputs", "76.8 % @274 | 78.3 % @382"},
	{"B6 B7", "003", "unequal-work", "1.001 @21 | 1.020 @22 | 1.0022 @122"},
	{"B8", "003", "hidden-cost", "Mean TPOT +80 % @18 | Mean TPOT +158 % @20 | Mean TPOT +108 % @21 | Mean TPOT +561 % @22"},
	{"B10", "003", "itl-zero-gap", "1169.72 @364 | 223.40 @447 | 890.11 @472"},
	{"B11", "003", "short-inputs", "2,000,000 @298,406 | 1,000,000 @323,431 | 128,000 @348,456"},
	{"B13", "003", "failures-not-reported", "13 of 13 @89"},
	{"B13 X3", "003", "no-repeats", "13 measurements @89"},
	{"B14", "003", "ingestion", "32.3 % of the run @356"},
	{"B15", "003", "totals-across-workloads", "9.93 @22"},
	{"B16", "003", "mostly-prompt", "99.8 % @279,387"},
	{"B17", "003", "burst", "51.0 % of P99 @100 | 50.2 % of P99 @133 | 49.0 % of P99 @166 | 44.6 % of P99 @203 | 42.9 % of P99 @237 | 51.2 % of P99 @281 | 50.4 % of P99 @306,439 | 50.7 % of P99 @331 | 66.2 % of P99 @356 | 50.9 % of P99 @389 | 50.1 % of P99 @414 | 56.3 % of P99 @464"},
	{"", "003", "baseline-not-best", "+61.1 % @18"},
	{"", "003", "itl-stalls", "5.54 times @110 | 4.73 times @143 | 4.47 times @176 | 13.81 times @213 | 6.68 times @247 | 32.16 times @316 | 32.64 times @341 | 52.96 times @399 | 27.64 times @424 | 24.62 times @449"},
	{"", "003", "benchmark-command-missing", "6 of 13 @270"},
}

// notCertain are the parts of findings that no figure or text of the study
// proves, so that a person has to judge them.
var notCertain = map[string]string{
	"H7":  "the runs that miss their rate by the drain alone are no overload: only the three that last much longer are found",
	"H11": "that 3 % is noise: one pair of equal runs is no estimate, its distance is told",
	"S2":  "what routing costs: told is that the prompts compared with were in the cache",
	"S10": "an anomaly of FP4 at small batches: of 1 and 10 prompts the weights that are read are known, the kernels are not",
	"S15": "whether a TPOT is controlled",
	"A1":  "what two replicas would reach: told is what was measured",
	"A12": "the six blocks whose answers differ in length: (N - 1) / N of means holds for equal ones alone",
	"A16": "the engine's own limit of 256: no figure shows it, the queue is told",
	"B2":  "which of script and heading is wrong",
	"B3":  "which form of the device it was: a bound of the faster form is kept; told is that the text does not say",
	"B6":  "the two blocks within 0.3 % of what was asked: told where their row compares them",
	"B10": "as A12",
	"B15": "which row looks faster than it is",
}

// studies reads the published studies in order, and skips the test where they
// are not.
func studies(t *testing.T) []interop.File {
	t.Helper()
	dir := os.Getenv("PERFLAB_SHARED")
	for up := ".."; dir == "" && len(up) < 40; up += "/.." {
		if _, err := os.Stat(filepath.Join(up, "shared", "published")); err == nil {
			dir = filepath.Join(up, "shared")
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "published", "*.txt"))
	if err != nil || dir == "" || len(names) != 4 {
		t.Skip("the published studies are not here: set PERFLAB_SHARED to the directory that has published/")
	}
	var files []interop.File
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, interop.Read(filepath.Base(n), data))
	}
	return files
}

// TestCoverage expects each finding of the reading at its lines with its
// value, and no finding besides.
func TestCoverage(t *testing.T) {
	said := map[string][]string{} // by study, type and line
	for _, f := range Audit(studies(t), audit.Options{}) {
		for _, x := range append([]audit.Finding{f}, f.Also...) {
			key := fmt.Sprintf("%s %s %d", x.Place.File[:3], x.Type, x.Place.Line)
			var text strings.Builder
			text.WriteString(x.Text + "; " + x.Expected)
			for _, c := range x.Figures {
				text.WriteString("; " + c.Text)
			}
			said[key] = append(said[key], text.String())
		}
	}
	found := map[string]int{}
	for _, w := range coverage {
		for part := range strings.SplitSeq(w.says, " | ") {
			words, at, _ := strings.Cut(part, " @")
			for line := range strings.SplitSeq(at, ",") {
				key := w.study + " " + w.kind + " " + line
				found[key]++
				if !slices.ContainsFunc(said[key], func(text string) bool { return strings.Contains(text, words) }) {
					t.Errorf("%s: %s: %q does not say %q", w.ids, key, said[key], words)
				}
			}
		}
	}
	for key, texts := range said {
		if len(texts) > found[key] {
			t.Errorf("%s is not expected: %q", key, texts)
		}
	}
}

// TestCoverageComplete: every finding of the reading is in the table.
func TestCoverageComplete(t *testing.T) {
	missing := map[string]bool{}
	for letter, n := range map[string]int{"H": 19, "S": 16, "A": 18, "B": 17, "X": 5} {
		for i := range n {
			missing[letter+strconv.Itoa(i+1)] = true
		}
	}
	for id := range notCertain {
		if !missing[id] {
			t.Errorf("%s is no finding of the reading", id)
		}
	}
	for _, w := range coverage {
		for id := range strings.FieldsSeq(w.ids) {
			delete(missing, id)
		}
	}
	if len(missing) > 0 {
		t.Errorf("not in the table: %q", slices.Sorted(maps.Keys(missing)))
	}
}

// Errors are contradictions: of the four studies these and no others.
func TestErrorsOfStudies(t *testing.T) {
	got := map[string]int{}
	for _, f := range Audit(studies(t), audit.Options{}) {
		if f.Severity == audit.Error {
			got[f.Place.File[:3]+" "+f.Type] += 1 + len(f.Also)
		}
	}
	want := map[string]int{"000 latency-identity": 17, "002 replicas-not-measured": 5, "003 percentage-wrong": 1}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
