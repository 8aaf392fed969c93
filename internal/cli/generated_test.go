package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jschema "github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/cli/measure"
	"perflab/internal/interop/vllmbench"
	"perflab/internal/openai"
	"perflab/internal/study"
	"perflab/internal/token"
	"perflab/internal/workload"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestGenerated holds the generated documents against the code that they are
// made from.
func TestGenerated(t *testing.T) {
	schema, err := studySchema()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"findings.md":       findingsMarkdown(document.Checks()),
		"study.schema.json": string(schema),
		"from-vllm.md":      fromVLLMMarkdown(),
		"commands.md":       commandsMarkdown(),
		"../CHANGELOG.md":   changelog(t),
	} {
		path := filepath.Join("..", "..", "docs", name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("docs/%s is stale (make docs writes it):\n%s", name, d)
		}
	}
}

// fromVLLMMarkdown is the table of vLLM's flags beside ours.
func fromVLLMMarkdown() string {
	fs := measure.NewBench(console.Env{}).Flags()
	return vllmbench.Document(func(name string) bool { return fs.Lookup(name) != nil }, workload.Datasets())
}

// changelog is what users see of the notes in changes: what is not released yet, then each release
// by the name of its directory, the newest first.
func changelog(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Changes\n\nMade of the notes in [changes](changes): `make docs` writes it anew.\n")
	releases, err := filepath.Glob("../../changes/*")
	if err != nil || len(releases) == 0 {
		t.Fatal(err, len(releases))
	}
	slices.SortFunc(releases, func(a, b string) int {
		next := func(dir string) bool { return filepath.Base(dir) == "unreleased" }
		if next(a) != next(b) {
			return map[bool]int{true: -1, false: 1}[next(a)]
		}
		return strings.Compare(b, a)
	})
	for _, dir := range releases {
		title := filepath.Base(dir)
		if title == "unreleased" {
			title = "Not released yet"
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		notes, err := filepath.Glob(filepath.Join(dir, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range notes {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "- %s\n", strings.NewReplacer("\n", "\n  ", "](../../", "](").Replace(strings.TrimSpace(string(text))))
		}
	}
	return b.String()
}

// findingsMarkdown is the reference of all types of findings as a document.
func findingsMarkdown(checks []audit.Check) string {
	var b strings.Builder
	b.WriteString(`# Findings

What ` + "`perflab audit`" + ` finds in results and in the documents that publish them. Types are stable: scripts may go by them.

A printed figure stands for every value that rounds to it. A finding is made only when no value of these intervals fits, under any definition ` +
		`that a known client uses ([the definitions](metrics.md#definitions-of-other-clients)); a check that lacks a figure is silent.

An **error** is arithmetic: figures that contradict each other under every definition known, or a document that contradicts its own figures. ` +
		"A **warning** is physics or practice that makes a conclusion doubtful. A **note** is what a reader should know. `perflab audit` exits with 3 when there is an error.\n")
	escape := strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "<", "&lt;", "&", "&amp;")
	for _, s := range []struct {
		severity audit.Severity
		heading  string
	}{{audit.Error, "Errors"}, {audit.Warning, "Warnings"}, {audit.Note, "Notes"}} {
		b.WriteString("\n## " + s.heading + "\n\n| Type | What it finds | When it applies |\n| --- | --- | --- |\n")
		for _, c := range checks {
			if c.Severity == s.severity {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Type, escape.Replace(c.Doc), escape.Replace(c.Holds))
			}
		}
	}
	return b.String()
}

// TestExamples proves that every shipped study parses, and that the schema
// that editors complete from accepts it.
func TestExamples(t *testing.T) {
	schema := compileSchema(t)
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("found %d examples: %v", len(paths), err)
	}
	t.Chdir(exampleModels(t, paths))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := study.Parse(path, data); err != nil {
			t.Errorf("%v", err)
		}
		if err := schema.Validate(generic(t, data)); err != nil {
			t.Errorf("%s does not fit the schema: %v", path, err)
		}
	}
	if err := schema.Validate(generic(t, []byte("name: x\ncolour: red\n"))); err == nil {
		t.Error("the schema accepts an unknown key")
	}
}

// exampleModels is a directory with files in place of those that scripts/make-gguf.py
// and the makers of environments make, and with the examples. It turns the paths into absolute ones.
func exampleModels(t *testing.T, paths []string) string {
	t.Helper()
	for i := range paths {
		var err error
		if paths[i], err = filepath.Abs(paths[i]); err != nil {
			t.Fatal(err)
		}
	}
	vocab := map[string]int{}
	for i := range token.Words() { // each is a token, at the start of a text and inside
		word := token.Word(i)
		vocab[strings.TrimSpace(word)], vocab["Ġ"+strings.TrimSpace(word)] = 2*i, 2*i+1
	}
	for c := 'a'; c <= 'z'; c++ {
		vocab[string(c)] = 2*token.Words() + int(c-'a')
	}
	vocab["Ġ"] = 2*token.Words() + 26
	tokenizer, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": []any{}, "pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"decoder": map[string]any{"type": "ByteLevel"},
		"model":   map[string]any{"type": "BPE", "ignore_merges": true, "vocab": vocab, "merges": []any{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string][]byte{"tiny-llama-tokenizer.json": tokenizer, "tiny-llama-f16.gguf": nil, "tiny-llama-q8_0.gguf": nil, "tiny-llama-q4_0.gguf": nil,
		"tiny-llama/tokenizer.json": tokenizer}
	if err := os.MkdirAll(filepath.Join(dir, "models", "tiny-llama"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, "models", name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(paths[0]), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSchemaKnowsEveryAPI: editors offer each backend and cache policy that a
// study takes.
func TestSchemaKnowsEveryAPI(t *testing.T) {
	schema := compileSchema(t)
	study, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range map[string][]string{"backend": append(openai.Backends(), openai.BackendVLLM), "cache": bench.CachePolicies()} {
		for _, v := range append(values, "nothing of the kind") {
			doc := generic(t, study).(map[string]any)
			doc["bench"] = map[string]any{key: v}
			if err := schema.Validate(doc); (err == nil) != slices.Contains(values, v) {
				t.Errorf("bench.%s %q: %v", key, v, err)
			}
		}
	}
}

func compileSchema(t *testing.T) *jschema.Schema {
	t.Helper()
	text, err := studySchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jschema.NewCompiler()
	if err := c.AddResource("study.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("study.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// generic is a YAML document as a JSON one.
func generic(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
