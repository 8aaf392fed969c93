package document

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// blockText prints a block of n requests as vllm bench serve does.
func blockText(n int, duration float64, in, out int, p99 float64) string {
	seconds := func(tokens int) float64 { return float64(tokens) / duration }
	return fmt.Sprintf("```\n============ Serving Benchmark Result ============\n"+
		"Successful requests:  %d\nFailed requests:  0\nBenchmark duration (s):  %.2f\nTotal input tokens:  %d\nTotal generated tokens:  %d\n"+
		"Request throughput (req/s):  %.2f\nOutput token throughput (tok/s):  %.2f\nTotal Token throughput (tok/s):  %.2f\n"+
		"---------------Time to First Token----------------\nMean TTFT (ms):  %.2f\nP99 TTFT (ms):  %.2f\n"+
		"-----Time per Output Token (excl. 1st token)------\nMean TPOT (ms):  50.00\nP99 TPOT (ms):  %.2f\n"+
		"==================================================\n```\n",
		n, duration, in, out, seconds(n), seconds(out), seconds(in+out), 40*duration, 80*duration, p99)
}

// goodStudy is a document that does it right: nothing is to be found in it.
var goodStudy = `# Serving Foo-8B on H100 SXM

## Conclusion

??? tip "Serving command"
    ` + "```bash" + `
    vllm serve acme/Foo-8B-FP8 --max-num-seqs 64
    ` + "```" + `

## Setup

### Model

acme/Foo-8B

### Hardware

2 x NVIDIA H100 SXM GPUs, driver 550.54, CUDA 12.4, power limit 700 W, on 2026-01-02.

### Engine version

- vLLM: v0.11.0
- SGLang: v0.5.3

### Method

Each row is the mean of 3 runs; the standard deviation is below 1 %. The revision of the model is 9a1b2c3.

` + "```bash" + `
vllm bench serve --model acme/Foo-8B --dataset-name random --random-input-len 1000 --random-output-len 100 --num-prompts 200 --header 'x: $y (z)'
` + "```" + `

## Results

### Engines

#### vLLM

` + "```bash" + `
vllm serve acme/Foo-8B
` + "```" + `

` + blockText(200, 20, 200000, 20000, 60) + `
#### SGLang

` + "```bash" + `
python3 -m sglang.launch_server --model-path acme/Foo-8B
` + "```" + `

` + blockText(200, 23, 200000, 20010, 70) + `
### Quantization in vLLM

` + "```bash" + `
vllm serve acme/Foo-8B-FP8
` + "```" + `

` + blockText(200, 16, 200000, 20020, 61) + `
### Batch size in vLLM

` + "```bash" + `
vllm serve acme/Foo-8B-FP8 --max-num-seqs 64
` + "```" + `

` + blockText(200, 15, 200000, 20030, 62)

// sliceFindings are the findings of this slice of the package.
func sliceFindings(docs ...string) []audit.Finding {
	var files []interop.File
	for i, d := range docs {
		files = append(files, interop.Read(fmt.Sprintf("doc%d.md", i), []byte(d)))
	}
	var out []audit.Finding
	for i := range files {
		out = append(out, ofDocument(&files[i], audit.Options{}, slices.Concat(commandRules, practiceRules))...)
	}
	return append(out, audit.Across(files)...)
}

// typesOf lists the types of findings, each once.
func typesOf(findings []audit.Finding) []string {
	var out []string
	for _, f := range findings {
		if !slices.Contains(out, f.Type) {
			out = append(out, f.Type)
		}
	}
	slices.Sort(out)
	return out
}

// edit replaces the first of each old by the new; a test whose old is not
// there fails.
func edit(t *testing.T, doc string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(doc, pairs[i]) {
			t.Fatalf("the document has no %q", pairs[i])
		}
		doc = strings.Replace(doc, pairs[i], pairs[i+1], 1)
	}
	return doc
}

// TestCleanStudy: a study that does it right has no finding, and neither has a
// block alone.
func TestCleanStudy(t *testing.T) {
	for name, doc := range map[string]string{
		"study": goodStudy, "block": strings.Trim(blockText(200, 20, 200000, 20000, 60), "`\n"), "empty": "", "prose": "Just text.\n",
		"block without failures": edit(t, blockText(200, 20, 200000, 20000, 60), "Failed requests:  0\n", ""),
	} {
		for _, f := range sliceFindings(doc) {
			t.Errorf("%s: %s %s: %s", name, f.Place, f.Type, f.Text)
		}
	}
}

// studyCase is one way to break the goodStudy, and the types found then.
type studyCase struct {
	name  string
	edits []string
	types []string
	words string
}

// studyCases are the ways to break the goodStudy, one a row.
func studyCases() []studyCase {
	vllm16 := "vllm serve acme/Foo-8B-FP8\n```\n\n" + blockText(200, 16, 200000, 20020, 61)
	best := "vllm serve acme/Foo-8B-FP8 --max-num-seqs 64\n```\n\n"
	return []studyCase{
		{"engine", []string{vllm16, "python3 -m sglang.launch_server --model-path acme/Foo-8B-FP8\n```\n\n" + blockText(200, 16, 200000, 20000, 61)},
			[]string{"engine-contradicts-heading"}, "its 20000 generated tokens equal those of the vLLM block"},
		{"model", []string{vllm16, strings.Replace(vllm16, "Foo-8B-FP8", "Foo-70B-FP8", 1)}, []string{"model-contradicts-heading", "several-changes"}, "serve acme/Foo-70B-FP8"},
		{"model of the title", []string{"### Model\n\nacme/Foo-8B", "### Model\n\nacme/Foo-70B"}, []string{"model-contradicts-heading"}, "its model is foo-70b, and its title"},
		{"layout", []string{"### Batch size in vLLM", "### TP2 in vLLM"}, []string{"flag-contradicts-heading"}, "says TP2"},
		{"layout kept", []string{"### Batch size in vLLM", "### TP1EP1 in vLLM"}, nil, ""},
		{"layout with experts", []string{"### Batch size in vLLM", "### TP2+EP2 in vLLM", best, "vllm serve acme/Foo-8B-FP8 -tp 2 --enable-expert-parallel\n```\n\n", "--max-num-seqs 64\n    ```", "\n    ```"}, []string{"one-factor-search", "several-changes"}, "layout"},
		{"fewer on purpose", []string{blockText(200, 16, 200000, 20020, 61), blockText(190, 16, 190000, 19000, 61)}, []string{"benchmark-command-missing"}, "190 x 1000"},
		{"tails of another speed", []string{blockText(200, 15, 200000, 20030, 62), blockText(200, 14, 200000, 20030, 180)}, nil, ""},
		{"expert parallelism", []string{"### Batch size in vLLM", "### TP+EP in vLLM"}, []string{"flag-contradicts-heading"}, "expert parallelism"},
		{"devices", []string{"launch_server --model-path", "launch_server --tp-size 4 --model-path"}, []string{"more-devices-than-stated"}, "up to 4 devices"},
		{"braces", []string{"--max-num-seqs 64\n    ```", "--max-num-seqs 64 --reasoning-parser={\"a\":\"b\",\"c\":1}\n    ```"}, []string{"command-not-shell-safe"},
			"becomes two words by brace expansion, without their quotes: --reasoning-parser=a:b --reasoning-parser=c:1"},
		{"braces in quotes", []string{"--max-num-seqs 64\n    ```", "--max-num-seqs 64 --reasoning-parser='{\"a\":\"b\",\"c\":1}'\n    ```"}, nil, ""},
		{"one key", []string{"--max-num-seqs 64\n    ```", "--max-num-seqs 64 --reasoning-parser {\"a\":1}\n    ```"}, []string{"command-not-shell-safe"}, "reaches the program as {a:1}"},
		{"ampersand", []string{"--num-prompts 200 ", "--num-prompts 200 --base-url http://h/x?a=1&b=2 "}, []string{"command-not-shell-safe"}, "cut at its &"},
		{"background", []string{"--num-prompts 200 ", "--num-prompts 200 > log 2>&1 & "}, nil, ""},
		{"parenthesis", []string{"--num-prompts 200 ", "--num-prompts 200 --label f(x) "}, []string{"command-not-shell-safe"}, "syntax error"},
		{"quotes of print", []string{"--num-prompts 200 ", "--num-prompts 200 --label “a b” "}, []string{"command-not-shell-safe"}, "quotes of print"},
		{"dash of print", []string{"--num-prompts 200 ", "–num-prompts 200 "}, []string{"command-not-shell-safe"}, "a dash of print"},
		{"continuation", []string{"vllm serve acme/Foo-8B-FP8 --max-num-seqs 64\n    ```", "vllm serve acme/Foo-8B-FP8 \\  \n    --max-num-seqs 64\n    ```"},
			[]string{"command-not-shell-safe"}, "spaces follow the backslash"},
		{"no continuation", []string{"vllm serve acme/Foo-8B-FP8 --max-num-seqs 64\n    ```", "vllm serve acme/Foo-8B-FP8\n    --max-num-seqs 64\n    ```"},
			[]string{"command-not-shell-safe"}, "lacks a backslash"},
		{"continued", []string{"vllm serve acme/Foo-8B-FP8 --max-num-seqs 64\n    ```", "vllm serve acme/Foo-8B-FP8 \\\n      --max-num-seqs 64\n    ```"}, nil, ""},
		{"placeholder", []string{"launch_server --model-path acme/Foo-8B", "launch_server --model-path acme/Foo-8B --host 10.1.2.3 --dist-init-addr $HEAD"},
			[]string{"command-placeholder"}, "10.1.2.3, $HEAD"},
		{"defined", []string{"launch_server --model-path acme/Foo-8B", "launch_server --model-path acme/Foo-8B --host 127.0.0.1 --port $PORT", "### Engine version", "PORT=8000\n\n### Engine version"}, nil, ""},
		{"dataset flag", []string{"--dataset-name random ", "--dataset-name random --sharegpt-output-len 5 "}, []string{"flag-without-effect"}, "--sharegpt-output-len 5"},
		{"default dataset", []string{"--dataset-name random ", "--hf-name sharegpt "}, []string{"flag-without-effect"}, "random prompts of 1024"},
		{"attention per rank", []string{"launch_server --model-path", "launch_server --enable-dp-attention --model-path"}, []string{"flag-without-effect"}, "--dp-size"},
		{"comment", []string{best + "```\n", best + "```\n# --max-num-seqs 128\n", "--max-num-seqs 64\n    ```", "--max-num-seqs=128\n    ```"}, []string{"script-contradicts-block"}, "says --max-num-seqs 128 where the script has --max-num-seqs 64"},
		{"comment agrees", []string{best + "```\n", best + "```\n# --max-num-seqs=64\n"}, nil, ""},
		{"not recorded", []string{vllm16, strings.Replace(vllm16, "-FP8", "", 1), "acme/Foo-8B-FP8 --max-num-seqs 64\n    ```", "acme/Foo-8B --max-num-seqs 64\n    ```", "Foo-8B-FP8 --max-num-seqs", "Foo-8B --max-num-seqs"},
			[]string{"change-not-recorded"}, "name quantisation"},
		{"several", []string{best, "vllm serve acme/Foo-8B-FP8 --max-num-seqs 64 --block-size 32\n```\n\n", "--max-num-seqs 64\n    ```", "--max-num-seqs 64 --block-size 32\n    ```"},
			[]string{"one-factor-search", "several-changes"}, "--block-size 32 added; --max-num-seqs 64 added; together +6.7 %"},
		{"other lengths", []string{"--random-input-len 1000", "--random-input-len 2000"}, []string{"benchmark-command-missing"}, "200 x 1000 in / 100 out"},
		{"requests lost", []string{blockText(200, 16, 200000, 20020, 61), strings.Replace(blockText(187, 16, 187000, 18700, 61), "Failed requests:  0\n", "", 1)},
			[]string{"failures-not-reported", "requests-missing"}, "187 of 200"},
		{"draft model", []string{best, "vllm serve acme/Foo-8B-FP8 --speculative-config '{\"method\":\"mtp\",\"num_speculative_tokens\":2}'\n```\n\n", "--max-num-seqs 64\n    ```", "--speculative-config '{\"method\":\"mtp\",\"num_speculative_tokens\":2}'\n    ```",
			"### Method\n", "### Method\n\nThe chosen draft model is trained on English.\n"}, []string{"text-contradiction"}, "draft model"},
		{"failures", []string{"Failed requests:  0\n", ""}, []string{"failures-not-reported"}, "1 of 4 blocks"},
		{"no repeats", []string{"Each row is the mean of 3 runs; the standard deviation is below 1 %. ", ""}, []string{"no-repeats"}, "each of the 4 measurements"},
		{"environment", []string{", driver 550.54, CUDA 12.4", "", "2 x NVIDIA H100 SXM GPUs", "NVIDIA H100 GPUs", "H100 SXM", "H100"}, []string{"environment-missing"}, "the form factor of the H100"},
		{"copy", []string{blockText(200, 16, 200000, 20020, 61), blockText(200, 20, 200000, 20000, 60)}, []string{"duplicate-block"}, "under another command"},
		{"same setup", []string{vllm16, strings.Replace(vllm16, "-FP8", "", 1), "### Quantization in vLLM", "### Once more"}, []string{"same-setup-differs", "several-changes"}, "25.0 % in total throughput"},
		{"noise", []string{"the mean of 3 runs; the standard deviation is below 1 %", "one run", best, "vllm serve acme/Foo-8B-FP8\n```\n\n", "--max-num-seqs 64\n    ```", "\n    ```",
			blockText(200, 15, 200000, 20030, 62), blockText(200, 15.8, 200000, 20030, 62)}, []string{"noise-floor"}, "1.3 % in total throughput"},
		{"tail", []string{blockText(200, 15, 200000, 20030, 62), blockText(200, 16, 200000, 20030, 180)}, []string{"tail-unstable"}, "61.00"},
		{"mojibake", []string{"2 x NVIDIA", "2 Ã— NVIDIA"}, []string{"mojibake"}, "Ã—"},
		{"prompt lengths", []string{blockText(200, 16, 200000, 20020, 61), blockText(200, 16, 199800, 20020, 61)}, []string{"prompt-length-differs"}, "999 tokens at line"},
	}
}

// TestStudyFindings breaks the study in one way a row: exactly the types named
// are found, with the words.
func TestStudyFindings(t *testing.T) {
	for _, tt := range studyCases() {
		found := sliceFindings(edit(t, goodStudy, tt.edits...))
		if got := typesOf(found); !slices.Equal(got, tt.types) {
			t.Errorf("%s: types %v, want %v", tt.name, got, tt.types)
			for _, f := range found {
				t.Logf("  %s %s: %s", f.Place, f.Type, f.Text)
			}
			continue
		}
		if len(tt.types) > 0 && !slices.ContainsFunc(found, func(f audit.Finding) bool { return strings.Contains(f.Text, tt.words) }) {
			t.Errorf("%s: no finding says %q: %s", tt.name, tt.words, found[0].Text)
		}
		for _, f := range found {
			if f.Place.File == "" || f.Place.Line == 0 {
				t.Errorf("%s: %s has no place", tt.name, f.Type)
			}
		}
	}
}

// TestOneFactor: three options tried one at a time are a note, and none with
// all combinations of two.
func TestOneFactor(t *testing.T) {
	doc := goodStudy
	for i, flags := range []string{"--max-num-seqs 64 --block-size 32", "--max-num-seqs 64 --async-scheduling"} {
		doc += "\n### Option " + fmt.Sprint(i) + " in vLLM\n\n```bash\nvllm serve acme/Foo-8B-FP8 " + flags + "\n```\n\n" + blockText(200, 12-float64(i), 200000, 20040+i, 62)
	}
	if got := typesOf(sliceFindings(doc)); !slices.Equal(got, []string{"one-factor-search"}) {
		t.Errorf("types %v", got)
	}
	doc += "\n### Crossed in vLLM\n\n```bash\nvllm serve acme/Foo-8B-FP8 --max-num-seqs 64 --block-size 32 --async-scheduling\n```\n\n" + blockText(200, 10, 200000, 20050, 62)
	if got := typesOf(sliceFindings(doc)); got != nil {
		t.Errorf("crossed: types %v", got)
	}
}

// TestConcurrencyIsPeak: a limit that is the peak of every block is none, unless
// it is the same in all.
func TestConcurrencyIsPeak(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits [4]int
		off    int
		want   bool
	}{{"as measured", [4]int{50, 61, 72, 83}, 0, true}, {"a limit that was reached", [4]int{64, 64, 64, 64}, 0, false}, {"once below it", [4]int{50, 61, 72, 83}, 1, false}} {
		doc := goodStudy
		for i, n := range tt.limits {
			peak := n
			if i == 3 {
				peak -= tt.off
			}
			doc = strings.Replace(doc, "Failed requests:  0\n", fmt.Sprintf("Failed  requests:  0\nMaximum request concurrency:  %d\nPeak concurrent requests:  %d\n", n, peak), 1)
		}
		doc = strings.ReplaceAll(doc, "Failed  requests", "Failed requests")
		if got := slices.Contains(typesOf(sliceFindings(doc)), "concurrency-is-peak"); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestEngineVersion: an address is no version.
func TestEngineVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"- vLLM v0.17.1": true, "SGLang: v0.5.5.post1": true, "vllm/vllm-openai:v0.11.0": true, "engine version 1.2": true, "It was vLLM 0.11.": true,
		"vllm serve M --host 0.0.0.0": false, "vllm at 10.0.0.1": false, "vllm serve M --gpu-memory-utilization 0.8": false,
	} {
		if got := environmentParts[0].shown().MatchString(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestOverload: engines at a rate that one of them cannot hold.
func TestOverload(t *testing.T) {
	at := func(duration, latency float64) string {
		b := blockText(200, duration, 200000, 20000+int(duration), 60)
		return strings.Replace(b, "Benchmark duration", "Request rate configured (RPS):  4.00\nBenchmark duration", 1) +
			fmt.Sprintf("Mean E2EL %.0f\n", latency)
	}
	for _, tt := range []struct {
		name       string
		vllm, slow float64
		want       bool
	}{{"one", 52, 70, true}, {"none", 52, 53, false}, {"both", 70, 90, false}} {
		doc := edit(t, goodStudy, blockText(200, 20, 200000, 20000, 60), withLatency(at(tt.vllm, 1), 1200), blockText(200, 23, 200000, 20010, 70), withLatency(at(tt.slow, 9), 9000))
		if got := slices.Contains(typesOf(sliceFindings(doc)), "compared-under-overload"); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// withLatency adds a section of end-to-end latency to a block.
func withLatency(block string, ms float64) string {
	return strings.Replace(block, "---------------Time to First", fmt.Sprintf("----------------End-to-end Latency----------------\nMean E2EL (ms):  %.2f\n---------------Time to First", ms), 1)
}

// TestChecksDocumented: every finding's type is in the table with its
// severity, and every type of the table once.
func TestChecksDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if seen[c.Type] || c.Doc == "" || c.Holds == "" || c.Type != interop.Slug(c.Type) || !strings.HasSuffix(c.Doc, ".") || !strings.HasSuffix(c.Holds, ".") {
			t.Errorf("%+v", c)
		}
		seen[c.Type] = true
	}
	for _, f := range sliceFindings(goodStudy+strings.ReplaceAll(goodStudy, "vllm serve", "vllm serve -tp"), strings.ReplaceAll(goodStudy, "Failed requests:  0\n", "")) {
		if !seen[f.Type] {
			t.Errorf("%s is not in the table", f.Type)
		}
	}
}

// FuzzCommands: no text makes the audit of commands and practice panic, and
// what it finds is in the text.
func FuzzCommands(f *testing.F) {
	f.Add([]byte(goodStudy))
	f.Add([]byte("vllm serve M -tp X “a” {\"a\":1,\"b\":{c,d}}\n"))
	f.Add([]byte("```bash\nexport A=1\nvllm serve x \\ \n--b 'c\n```\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		one := interop.Read("a.md", data)
		if one.Doc == nil { // a file of JSON, of which there is no document to check
			return
		}
		both := []interop.File{one, interop.Read("b.md", []byte(goodStudy))}
		for _, found := range append(ofDocument(&one, audit.Options{}, slices.Concat(commandRules, practiceRules)), audit.Across(both)...) {
			if found.Text == "" || found.Type == "" || found.Severity == "" || found.Place.File == "" {
				t.Fatalf("%+v", found)
			}
			if found.Place.File == "a.md" && found.Place.Line > max(1, len(one.Doc.Lines)) {
				t.Fatalf("%s is past the end", found.Place)
			}
		}
	})
}
