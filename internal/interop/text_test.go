package interop

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/interop/markdown"
	"perflab/internal/result"
)

// study is the document of testdata/study.md.
func study(t *testing.T) File {
	t.Helper()
	data, err := os.ReadFile("testdata/study.md")
	if err != nil {
		t.Fatal(err)
	}
	f := Read("dir/study.md", data)
	for _, fault := range f.Faults {
		t.Error(fault)
	}
	return f
}

func TestFactsOfRuns(t *testing.T) {
	type facts struct {
		Lines    string
		Section  string
		Model    string
		Command  string
		Requests int
		Rate     float64
		Labels   result.Labels
	}
	setup := func(l result.Labels) result.Labels {
		l[result.LabelHardware], l[result.LabelGPUs], l[result.LabelNodes] = "4 × Accelerator Z9 on a single node.", "4", "1"
		return l
	}
	bench := "vllm bench serve --model acme/Aster-7B --dataset-name random --random-input-len 100 --random-output-len 10 --num-prompts 50"
	chat := func(role, caption string) result.Labels {
		return setup(result.Labels{
			"engine": "vllm", "engine_version": "v0.9.9", "role": role, "caption": caption, "case": "Chat 8RPS", "profile": "Chat 8RPS",
			"dataset": "chat", "request_rate": "8", "dataset_name": "Chat", "total_requests": "200",
		})
	}
	want := []facts{
		{"64-68", "Results/Engines/vLLM", "acme/Aster-7B", "vllm serve acme/Aster-7B -tp 4", 50, 0, setup(result.Labels{
			"engine": "vllm", "engine_version": "v0.9.9", "case": "random short", "caption": "Benchmark result", "dataset": "random", "benchmark_command": bench,
			"request_rate": "inf", "max_concurrency": "none"})},
		{"71-74", "Results/Engines/vLLM", "acme/Aster-7B", "vllm serve acme/Aster-7B -tp 4", 0, 0, setup(result.Labels{
			"engine": "vllm", "engine_version": "v0.9.9", "case": "chat", "caption": "Benchmark result"})},
		{"85-87", "Results/Engines/SGLang", "acme/Aster-7B", "python3 -m sglang.launch_server --model-path acme/Aster-7B --tp-size 4", 50, 0, setup(result.Labels{
			"engine": "sglang", "engine_version": "v0.4.1.post2", "dataset": "random", "benchmark_command": bench,
			"request_rate": "inf", "max_concurrency": "none"})},
		{"107-110", "Results/Other Cases", "acme/Aster-7B", "--max-model-len=4096 --max-num-seqs=32", 200, 8, chat("baseline", "Baseline benchmark result")},
		{"115-118", "Results/Other Cases", "acme/Aster-7B", "--max-model-len=4096 --max-num-seqs=64", 200, 8, chat("optimized", "Optimized benchmark result")},
	}
	var got []facts
	for _, r := range study(t).Runs {
		im := r.Header.Imported
		got = append(got, facts{fmt.Sprintf("%d-%d", r.Place.Line, r.Place.End), strings.Join(r.Place.Section, "/"), r.Header.Model, r.Header.Command, r.Header.Requests, r.Header.Rate, im.Labels})
		if im.File != "study.md" || im.Format != FormatText || im.Line != r.Place.Line || im.End != r.Place.End || !slices.Equal(im.Section, r.Place.Section) {
			t.Errorf("%s: imported %+v", r.Place, im)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDocument(t *testing.T) {
	doc := study(t).Doc
	var sections, scripts, prose []string
	for _, s := range doc.Sections {
		sections = append(sections, fmt.Sprintf("%d %d %s", s.Line, s.Level, strings.Join(s.Path, "/")))
	}
	for _, s := range doc.Scripts {
		scripts = append(scripts, fmt.Sprintf("%d-%d %s [%s] %s (%s)", s.Line, s.End, s.Kind, s.Caption, s.Text, s.Note))
	}
	for _, p := range doc.Prose {
		prose = append(prose, fmt.Sprintf("%d %s", p.Line, p.Text))
	}
	want := [][]string{
		{
			"4 1 Tuning Aster-7B", "6 2 Conclusion", "18 2 Setup", "20 3 Setup/Model", "24 3 Setup/Hardware", "28 3 Setup/Engine Version", "33 3 Setup/Profiles",
			"35 4 Setup/Profiles/Chat 8RPS", "43 3 Setup/Commands", "50 2 Results", "52 3 Results/Engines", "54 7 Results/Engines/vLLM", "77 7 Results/Engines/SGLang",
			"90 3 Results/Other Cases", "121 2 Setext Heading",
		},
		{
			"10-11 serving [Serving Command] vllm serve acme/Aster-7B-FP8 --max-num-seqs 64 ()",
			"47-47 benchmark [] vllm bench serve --model acme/Aster-7B --dataset-name random --random-input-len 100 --random-output-len 10 --num-prompts 50 (Short prompts)",
			"58-58 serving [Serving script] vllm serve acme/Aster-7B -tp 4 (all defaults)",
			"80-81 serving [] python3 -m sglang.launch_server --model-path acme/Aster-7B --tp-size 4 ()",
			"95-96 flags [Baseline Backend Parameters] --max-model-len=4096 --max-num-seqs=32 ()",
			"101-102 flags [Optimized Backend Parameters] --max-model-len=4096 --max-num-seqs=64 ()",
		},
		{
			`8 ???+ tip "Serving Command"`, "22 acme/Aster-7B", "26 4 × Accelerator Z9 on a single node.", "30 - vLLM: v0.9.9", "31 - SGLang v0.4.1.post2",
			`55 ??? info "Serving script"`, `61 ??? info "Benchmark result"`, "92 - Profile: `Chat 8RPS`", "93 - Baseline Backend Parameters:", "99 - Optimized Backend Parameters:",
			`105 ??? info "Baseline benchmark result"`, `113 ??? info "Optimized benchmark result"`, "124 The end.",
		},
	}
	if diff := cmp.Diff(want, [][]string{sections, scripts, prose}); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	table := []Table{{
		Place: Place{"dir/study.md", 14, 16, []string{"Conclusion"}},
		Head:  []string{"Case", "Baseline", "Optimized"},
		Rows:  []Row{{16, []string{"Chat", "Total TPS: 100.50\nMean TTFT: 10", "Total TPS: 150.25 (+49.5%)"}}},
	}}
	if diff := cmp.Diff(table, doc.Tables); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if doc.Title != "Tuning Aster-7B" || len(doc.Lines) != 124 {
		t.Errorf("title %q, %d lines", doc.Title, len(doc.Lines))
	}
}

// A text without Markdown: headings are lines that name a model or a number of
// nodes, and commands have placeholders.
func TestPlainText(t *testing.T) {
	const block = "============ Serving Benchmark Result ============\nSuccessful requests: 10\nFailed requests: 2\nTotal input tokens: 1000\n==================================================\n"
	text := "3x Box\n\nTemplates:\n\ndocker exec -it box bash -c “vllm serve M --port 80 -tp X”\n• vllm bench serve --model M --num-prompts X\n\n" +
		"acme/Aster-7B\n\n2 nodes (tp)\n\n" + block + "\n4 node (tp)\n\n" + block + "\nASTER-70B\n\n1 node\n\n" + block + "\nAster-70B is slow, says vllm serve.\n"
	f := Read("plain.txt", []byte(text))
	var got []string
	for _, r := range f.Runs {
		got = append(got, fmt.Sprintf("%s | %s | %s | %s | %s | %d", strings.Join(r.Place.Section, "/"), r.Header.Model, r.Header.Label("nodes"), r.Header.Command,
			r.Header.Label("benchmark_command"), r.Header.Requests))
	}
	want := []string{
		"acme/Aster-7B/2 nodes (tp) | acme/Aster-7B | 2 | vllm serve acme/Aster-7B --port 80 -tp 2 | vllm bench serve --model acme/Aster-7B --num-prompts 12 | 12",
		"acme/Aster-7B/4 node (tp) | acme/Aster-7B | 4 | vllm serve acme/Aster-7B --port 80 -tp 4 | vllm bench serve --model acme/Aster-7B --num-prompts 12 | 12",
		"ASTER-70B/1 node | ASTER-70B | 1 | vllm serve ASTER-70B --port 80 -tp 1 | vllm bench serve --model ASTER-70B --num-prompts 12 | 12",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if f.Doc.Title != "3x Box" || len(f.Doc.Scripts) != 2 || len(f.Faults) != 0 {
		t.Errorf("title %q, scripts %v, faults %v", f.Doc.Title, f.Doc.Scripts, f.Faults)
	}
}

func TestScriptsOfFences(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"prompts", "```console\n$ vllm serve a/B\n$ ls -l\nfile.txt\n```", []string{"serving vllm serve a/B", "other ls -l", "other file.txt"}},
		{"output without a language", "```\nSome output: 5\nvllm serve a/B\n```", []string{"serving vllm serve a/B"}},
		{"missing backslash", "```sh\nvllm serve a/B \\\n  -tp 4\n  --port 5\nsleep 3\n```", []string{"serving vllm serve a/B -tp 4 --port 5", "other sleep 3"}},
		{"flags", "```bash\n--max-model-len=4\n# more\n--port 1\n```", []string{"flags --max-model-len=4", "flags --port 1"}},
		{"other language", "```python\nimport vllm\nvllm serve a/B\n```", nil},
		{"list in a fence", "```\n- one: 1\n- two: 2\n```", nil},
		{"environment", "```bash\nA_B=1 vllm serve a/B\n```", []string{"serving A_B=1 vllm serve a/B"}},
		{"docker", "```bash\ndocker run --gpus all vllm/vllm-openai:v1 --model a/B\n```", []string{"serving docker run --gpus all vllm/vllm-openai:v1 --model a/B"}},
		{"benchmark beside a server", "```bash\ndocker exec vllm-serve vllm bench serve --model a/B\n```", []string{"benchmark docker exec vllm-serve vllm bench serve --model a/B"}},
		{"never closed", "```bash\nvllm serve a/B", []string{"serving vllm serve a/B"}},
		{"four marks", "````bash\nvllm serve a/B\n```\nls -l\n````\n# Heading", []string{"serving vllm serve a/B", "other ls -l"}},
		{"inline in text", "Run it:\n`vllm serve a/B --port 1`\n", []string{"serving vllm serve a/B --port 1"}},
		{"sentences", "vllm serve is a command - it serves\npython is slow with vllm serve\n", nil},
	} {
		var got []string
		for _, s := range Read("x", []byte(c.text)).Doc.Scripts {
			if s.Text != "```" {
				got = append(got, s.Kind+" "+s.Text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestSections(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"levels", "# T\n## A ##\n### B\n## C\n# U\n## D\n", []string{"T", "A", "A/B", "C", "U", "U/D"}},
		{"no space", "# T\n#A\n#\n####### B\n", []string{"T"}},
		{"in a fence", "# T\n```\n# A\n```\n", []string{"T"}},
		{"setext", "T\n===\n\nA\n---\n\n- item\n---\n\n| a |\n|---|\n", []string{"T", "A"}},
		{"bold", "# T\n**A**\n**B:**\n**C** and **D**\n**E.**\n - **F**\n**" + strings.Repeat("G", 101) + "**\n", []string{"T", "A", "B"}},
		{"above an admonition", "# T\n\nA\n??? info \"x\"\n\nOne says:\n??? info \"y\"\n", []string{"T", "A"}},
		{"quoted", "# T\n> # A\n", []string{"T"}},
		{"title later", "**Note**\n\n# T\n## A\n", []string{"Note", "T", "A"}},
	} {
		var got []string
		for _, s := range Read("x", []byte(c.text)).Doc.Sections {
			got = append(got, strings.Join(s.Path, "/"))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestCells(t *testing.T) {
	for line, want := range map[string][]string{
		`| a | b |`:                    {"a", "b"},
		`a | b`:                        {"a", "b"},
		`| a \| b | **c** | d<br/>e |`: {"a | b", "c", "d\ne"},
		`| <span style="x:y;">+1%</span> | 3 < 4 |`: {"+1%", "3 < 4"},
		`||`: {""},
	} {
		if diff := cmp.Diff(want, markdown.Cells(line)); diff != "" {
			t.Errorf("%s: -want +got\n%s", line, diff)
		}
	}
}

func TestNaming(t *testing.T) {
	for text, want := range map[string]string{
		"8 × NVIDIA A100 SXM 80GB GPUs on a single node.": "8", "8 Ã— NVIDIA A100": "8", "NVIDIA H200x8": "8", "2x RTX 4090": "2", "A single 910B": "1",
		"NVIDIA H200": "", "NVIDIA RTX4090": "", "one": "", "NVIDIA RTX 4090 24GB / A100 80GB": "",
	} {
		if got := gpusIn(text); got != want {
			t.Errorf("%q: %q devices, want %q", text, got, want)
		}
	}
	for line, want := range map[string]bool{
		"Qwen/Qwen3-32B": true, "GPT-OSS-120B": true, "gpt-oss-20b": true, "Llama-3.3-70B-Instruct": true, "Mixtral-8x7B": true,
		"and/or": false, "well-known": false, "120B": false, "https://a.b/c-1": false, "a/b/c-1": false, "Qwen/Qwen3-32B is fast": false, "": false,
	} {
		if got := isModelName(line); got != want {
			t.Errorf("isModelName(%q) = %v", line, got)
		}
	}
	for text, want := range map[string]string{
		"vllm serve a/B --port 1": "a/B", "vllm serve --model a/B": "a/B", "python3 -m sglang.launch_server --model-path=a/B": "a/B",
		"python -m vllm.entrypoints.openai.api_server --model a/B": "a/B", "trtllm-serve a/B": "a/B", "trtllm-serve serve a/B": "a/B",
		"llama-server -m b.gguf": "b.gguf", "--port 1": "", "vllm serve --port 1": "", "docker run x vllm serve 'a/B'": "a/B",
	} {
		if got := modelOf(text); got != want {
			t.Errorf("%s: model %q, want %q", text, got, want)
		}
	}
}

// Reading takes time linear in the text, whatever is in it.
func TestReadTextIsLinear(t *testing.T) {
	const size = 1 << 18
	block := "==Serving Benchmark Result==\nMean TTFT (ms): 1\n====\n"
	var keys strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	long, blocks := strings.Repeat("x ", 4000), strings.Repeat(block, size/len(block))
	for name, text := range map[string]string{
		"rules": "=", "bars": "|", "hashes": "#", "headings": "# a\n", "rows": "|a|\n|-|\n", "tags": "<a", "open tags": "| <1 |\n|-|\n", "tags in a cell": "|" + strings.Repeat("<1", 999) + "|\n|-|\n",
		"fences": "```\n", "colons": ":", "blocks": block, "prompts": "$ vllm serve a \\\n", "flags": "```\n--a\n```\n" + block, "profiles": "# a\n```yaml\nrequest_rate: 1\n```\n" + block,
		"deep": "### a\n#### b\n**c**\n```\nvllm serve a\n```\n", "figures": "Mean TTFT (ms): 1\n\n\n\n", "quotes": "> ", "newlines": "\n", "bold": "**",
		"script of all blocks":  "```\nvllm serve " + long + "\n```\n" + blocks,
		"command of all blocks": "```\nvllm bench serve --num-prompts X " + long + "\n```\n" + blocks,
		"caption of all blocks": long + long + "\n```\n" + blocks,
		"heading of all blocks": "# " + long + long + "\n" + blocks,
		"profile of all blocks": "# Rate 1\n```yaml\nrequest_rate: 1\n" + keys.String() + "```\n" + blocks,
		"one command":           strings.Repeat("vllm serve M --a \\\n", size/18),
	} {
		text := []byte(strings.Repeat(text, max(1, size/len(text))))
		best := time.Hour // of three, as the machine may have other work
		for try := 0; try < 3 && best > 2*time.Second; try++ {
			at := time.Now()
			readText("x", text)
			best = min(best, time.Since(at))
		}
		if best > 2*time.Second {
			t.Errorf("%s: %v for %d bytes", name, best, len(text))
		}
	}
}

// A server and its figures may stand in one fence, as a terminal has them.
func TestTerminalLog(t *testing.T) {
	f := Read("log", []byte("# L\n```console\n$ vllm serve a/B -tp 2\n$ vllm bench serve --model a/B --num-prompts 5\n==Serving Benchmark Result==\nSuccessful requests: 5\n====\n$ ls\n```\n"))
	if len(f.Runs) != 1 || f.Runs[0].Header.Command != "vllm serve a/B -tp 2" || f.Runs[0].Header.Label(result.LabelBenchCommand) == "" {
		t.Errorf("%+v", f.Runs)
	}
}

func TestVersions(t *testing.T) {
	const block = "\n==Serving Benchmark Result==\nSuccessful requests: 5\n====\n"
	for text, want := range map[string]string{
		"# T\n## vLLM v0.9.1" + block: "vllm v0.9.1",
		"# T\n## SGLang" + block:      "sglang ",
		"# T\n- vLLM version: 0.8.5\n## SGLang\n```bash\nvllm serve a/B\n```" + block:        "vllm 0.8.5",
		"# T\n```bash\ndocker run vllm/vllm-openai:v0.7.3 --model a/B\n```" + block:          "vllm v0.7.3",
		"# T\n```bash\n--max-model-len 5 --tp-size 4\n```" + block:                           " ",
		"# T of Aster-7B\n## vLLM against SGLang" + block:                                    " ",
		"# T\n### Engine versions\n- TensorRT-LLM: v1.2.0rc1\n### TensorRT-LLM FP8 " + block: "trtllm v1.2.0rc1",
	} {
		r := Read("x", []byte(text)).Runs[0]
		if got := r.Header.Label("engine") + " " + r.Header.Label("engine_version"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTextOrJSON(t *testing.T) {
	for text, want := range map[string]bool{
		"{\"a\": 1}": true, " [ {} ]": true, "[]": true, "{}": true, "[![badge](x)](y)": false, "[link](x)": false, "{% raw %}": false, "": false, "# T": false,
	} {
		if got := isJSON([]byte(text)); got != want {
			t.Errorf("%q: JSON %v", text, got)
		}
	}
}

// Which script a block was served by, of those above it.
func TestScriptOfBlock(t *testing.T) {
	serve := func(model string) string { return "```bash\nvllm serve a/" + model + "\n```\n" }
	const block = "\n==Serving Benchmark Result==\nSuccessful requests: 5\n====\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"recommended above the results", "# T\n## Conclusion\n" + serve("X") + "## Results\n" + block, []string{""}},
		{"of the document", "# T\n" + serve("A") + "## Results\n### One\n" + block + "### Two\n" + block, []string{"A", "A"}},
		{"of the section around", "# T\n## R\n" + serve("A") + "### One\n" + serve("B") + block + "### Two\n" + block, []string{"B", "A"}},
		{"of a neighbour with its own block", "# T\n## R\n### One\n" + serve("A") + block + "### Two\n" + block, []string{"A", ""}},
		{"of a neighbour for scripts", "# T\n## R\n### Script\n" + serve("A") + "### Result\n" + block, []string{"A"}},
		{"under bold lines", "# T\n## R\n**Script**\n" + serve("A") + "**Result**\n" + block + "**Script**\n" + serve("B") + "**Result**\n" + block, []string{"A", "B"}},
		{"roles", "# T\nBaseline script:\n" + serve("A") + "Optimized script:\n" + serve("B") + "Baseline result:\n" + block + "Optimized result:\n" + block, []string{"A", "B"}},
		{"roles in comments", "# T\n```\n# baseline\nvllm serve a/A\n# optimized\nvllm serve a/B\n```\nBaseline:\n" + block, []string{"A"}},
	} {
		var got []string
		for _, r := range Read("x", []byte(c.text)).Runs {
			got = append(got, strings.TrimPrefix(r.Header.Command, "vllm serve a/"))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// Which benchmark command made a block.
func TestCommandOfBlock(t *testing.T) {
	const text = "# T\n```bash\n%s\n```\n==Serving Benchmark Result==\nSuccessful requests: 5\nTotal input tokens: 500\nTotal generated tokens: 50\n====\n"
	for command, want := range map[string]bool{
		"vllm bench serve --num-prompts 5":                                               true,
		"vllm bench serve --num-prompts 5 --random-input-len 100 --random-output-len 10": true,
		"vllm bench serve --num-prompts=5 --random_input_len=102":                        true,
		"vllm bench serve --num-prompts 5 --random-output-len 12":                        true, // requests may end early
		"vllm bench serve --num-prompts ${N}":                                            true,
		"vllm bench serve --num-prompts 6":                                               false,
		"vllm bench serve --num-prompts 5 --random-input-len 200":                        false,
		"vllm bench serve --num-prompts 5 --random-input-len 50":                         false,
		"vllm bench serve --num-prompts 5 --random-output-len 5":                         false,
		"vllm bench serve":                                false,
		"guidellm benchmark --max-requests 5":             false,
		"python3 -m sglang.bench_serving --num-prompts 5": false,
	} {
		if got := Read("x", fmt.Appendf(nil, text, command)).Runs[0].Header.Label(result.LabelBenchCommand) != ""; got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}
