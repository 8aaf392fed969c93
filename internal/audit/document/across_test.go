package document

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// TestAcross checks files beside each other, once a pair of groups.
func TestAcross(t *testing.T) {
	chat := func(in, out int) string {
		doc := strings.Replace(goodStudy, "--dataset-name random --random-input-len 1000 --random-output-len 100", "--dataset-name sharegpt --dataset-path x", 1)
		for _, n := range []string{"20000", "20010", "20020", "20030"} {
			doc = strings.ReplaceAll(doc, "generated tokens:  "+n, fmt.Sprintf("generated tokens:  %d", out))
		}
		return strings.ReplaceAll(doc, "input tokens:  200000", fmt.Sprintf("input tokens:  %d", in))
	}
	count := func(docs []string, of string) (n int) {
		for _, f := range sliceFindings(docs...) {
			if f.Type == of {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		name string
		docs []string
		of   string
		want int
	}{
		{"other sample", []string{chat(43500, 40000), chat(68400, 56200)}, "workload-mismatch", 1},
		{"other sample in three files", []string{chat(43500, 40000), chat(68400, 56200), chat(68500, 56300)}, "workload-mismatch", 1},
		{"other prompts", []string{chat(43500, 40000), chat(68400, 40000)}, "workload-mismatch", 1},
		{"other tokenizer", []string{chat(43500, 40000), chat(44500, 40100)}, "workload-mismatch", 0},
		{"same file twice", []string{goodStudy, goodStudy}, "block-in-two-files", 1},
		{"one file", []string{goodStudy}, "block-in-two-files", 0},
		{"one client", []string{goodStudy, chat(43500, 40000)}, "definitions-mixed", 0},
	} {
		if got := count(tt.docs, tt.of); got != tt.want {
			t.Errorf("%s: %d of %s, want %d", tt.name, got, tt.of, tt.want)
		}
	}
	other := strings.ReplaceAll(goodStudy, "NVIDIA H100 SXM", "NVIDIA B200 SXM")
	for _, f := range sliceFindings(goodStudy, other) {
		if f.Type == "block-in-two-files" && f.Severity != audit.Warning {
			t.Errorf("another document's results: %s", f.Severity)
		}
	}
}

// TestDefinitionsMixed: files of two clients with one name for two things.
func TestDefinitionsMixed(t *testing.T) {
	own := interop.Read("own.md", []byte(goodStudy))
	theirs := interop.Read("theirs.md", []byte(goodStudy))
	for i := range theirs.Runs {
		theirs.Runs[i].Header.Imported.Client = "another"
		theirs.Runs[i].Defs["tpot"] = "e2e_per_token"
	}
	found := slices.DeleteFunc(audit.Across([]interop.File{own, theirs}), func(f audit.Finding) bool { return f.Type != "definitions-mixed" })
	if len(found) != 1 || !strings.Contains(found[0].Text, "TPOT (e2e_per_token, there decode_per_token)") || strings.Contains(found[0].Text, "TTFT") {
		t.Errorf("%+v", found)
	}
}
