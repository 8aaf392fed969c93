package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/test/browser"
)

// pagesReport is a document of hostile text: of names that are elements, of one without an end,
// and of a block without figures.
const pagesReport = `# Serving <img src=x onerror=alert(1)> on NVIDIA H100 SXM "'&

## BF16 </script><script>alert(2)</script>

` + "```bash\nvllm serve Qwen/Qwen3-8B --served-model-name '</code></pre><script>alert(3)</script>' " + longFlags + "\n```\n\n" +
	"```\n============ Serving Benchmark Result ============\nSuccessful requests: 200\nFailed requests: 0\nBenchmark duration (s): 50.00\nTotal input tokens: 100000\n" +
	"Total generated tokens: 20000\nRequest throughput (req/s): 4.00\nOutput token throughput (tok/s): 400.00\nTotal token throughput (tok/s): 2400.00\n==================================================\n```\n\n" +
	"## A-heading-without-a-place-to-break-" + longWord + "\n\n```\n============ Serving Benchmark Result ============\nSuccessful requests: 0\nFailed requests: 200\n==================================================\n```\n"

const (
	longWord  = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiiiiiiii"
	longFlags = "--speculative-config '{\"method\":\"" + longWord + "\",\"num_speculative_tokens\":1}'"
)

// pagesStudy has long and hostile names, a configuration that the engine refuses, and two loads.
const pagesStudy = `name: pages
title: "Throughput of <b>Qwen3-8B</b> & ` + longWord + `"
seed: 1
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
engines: {vllm: {version: 0.11.0}}
objective: {metric: total_token_throughput, slos: [p99_ttft_ms <= 5000]}
strategy: staged
workloads:
  - {name: chat, title: "Chat </script><script>alert(4)</script>", dataset_name: random, num_prompts: 60, random_input_len: 256, random_output_len: 16}
  - {name: long, dataset_name: random, num_prompts: 20, random_input_len: 2000, random_output_len: 8}
baseline: {label: vLLM, engine: vllm}
stages:
  - name: Quantization
    try:
      - {label: "FP8 ` + longWord + `", model: Qwen/Qwen3-8B-FP8}
  - name: Parallelism
    try:
      - {label: TP2, set: {tp: 2}}
budget: {trials: 8}
runtime: {kind: predicted}
`

// TestPages looks at pages in a browser: those of the golden files, which are of every kind, and
// those that perflab makes of simulated runs and of hostile text, a site among them.
//
//	make pages
//
// PICTURES=DIR keeps a picture of every page.
func TestPages(t *testing.T) {
	if os.Getenv("PERFLAB_BROWSER") == "" {
		t.Skip("PERFLAB_BROWSER names no browser (chromium): some 40 pages take minutes")
	}
	b := browser.Start(t)
	root, err := filepath.Abs("../../internal/report")
	if err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	look := func(dir, page string) {
		name, err := filepath.Rel(dir, page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(name, ".html"), func(t *testing.T) {
			address := "file://" + filepath.ToSlash(page)
			b.Visit(t, strings.NewReplacer("/", "_", ".html", "").Replace(name), address)
			lookAtSearch(t, b, address)
		})
	}
	for _, page := range goldenPages(t, root) {
		look(root, page)
	}
	for _, page := range madePages(t, made) {
		look(made, page)
	}
}

// lookAtSearch finds what the first row of a page's index is about. A page without JavaScript shows no search, which could find nothing.
func lookAtSearch(t *testing.T, b *browser.Browser, address string) {
	t.Helper()
	p := b.Open(t, address, browser.View{})
	if !browser.Eval[bool](p, `!!document.querySelector("#q")`) {
		return
	}
	p.Type("#q", browser.Eval[string](p, `window.perflabIndex[0][0].split(/\s+/).slice(0, 3).join(" ")`))
	p.Wait(`document.querySelector("#hits a[href]")`)
	if plain := b.Open(t, address, browser.View{Scriptless: true}); browser.Eval[bool](plain, `document.querySelector("form[role=search]").checkVisibility()`) {
		t.Error("without JavaScript there is a search")
	}
}

// goldenPages are the pages among the golden files.
func goldenPages(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"", "audited", "prediction"} {
		pages, err := filepath.Glob(filepath.Join(root, dir, "testdata", "*.html"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pages...)
	}
	if len(all) < 15 {
		t.Fatalf("there are %d golden pages", len(all))
	}
	return all
}

// madePages are pages that the program makes in a directory.
func madePages(t *testing.T, dir string) []string {
	t.Helper()
	for name, text := range map[string]string{"report.md": pagesReport, "study.yaml": pagesStudy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		"import report.md --out imported",
		"tune study.yaml --out study",
		"report imported --html imported.html",
		"report study/trials/001/chat --html run.html",
		"report study/trials/001/chat study/trials/002/chat --html runs.html",
		"compare 'a </script><script>alert(5)</script>=study/trials/001/chat' b=study/trials/002/chat --html compare.html",
		"audit report.md study --html audit.html",
		"predict --gpu h100-sxm --num-prompts 20 --html predict.html -- vllm serve Qwen/Qwen3-8B",
		"site study imported study/trials/001/chat --out site --date 2026-03-01",
	} {
		out := run(t, dir, command)
		t.Logf("perflab %s: %d bytes", command, len(out))
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"study/report.html", "site/*.html", "site/*/*.html"} {
		more, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	if len(pages) < 13 {
		t.Fatalf("perflab made %d pages: %q", len(pages), pages)
	}
	return pages
}
