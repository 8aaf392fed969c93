package read_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/verdict"
)

const printed = "============ Serving Benchmark Result ============\nSuccessful requests:                     7\n" +
	"Mean TTFT (ms):                          12.50\n==================================================\n"

// TestPiped: "-" is standard input, of import and of audit.
func TestPiped(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"import", "-", "--out", out}, {"audit", "-"}} {
		var stdout, stderr bytes.Buffer
		code := cli.Main(console.Env{Args: args, Stdin: strings.NewReader(printed), Stdout: &stdout, Stderr: &stderr, Getenv: os.Getenv})
		if code != console.ExitDone || strings.Contains(stderr.String(), "no such file") {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout.String(), stderr.String())
		}
	}
	if s := figuresOf(t, filepath.Join(out, "001-run")); s.Figures["mean_ttft_ms"] != 12.5 {
		t.Errorf("figures %v", s.Figures)
	}
}

// TestUnreadable: of everything that gives no run the reason is said.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"a.gz":   {"\x1f\x8b\x08\x00", "this is compressed (gzip): unpack it first, as with gunzip"},
		"a.zip":  {"PK\x03\x04", "unzip"},
		"a.md":   {"", "the file is empty"},
		"b.md":   {"\n \n", "the file is empty"},
		"c.bin":  {"\x00\x01", "this is neither text"},
		"d/a/b":  {printed, "a directory in a directory is not read: name it too"},
		"e.json": {"[]", "the file has no result"},
		"f.md":   {"| Successful requests | 7 |\n|---|---|\n", "no result was found"},
	} {
		path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.data), 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "d/") {
			path = filepath.Dir(filepath.Dir(path))
		}
		_, said := perflabRun(t, console.ExitFailed, "import", path, "--out", filepath.Join(t.TempDir(), "out"))
		if !strings.Contains(said, path) || !strings.Contains(said, c.want) {
			t.Errorf("%s: said %q, want %q", name, said, c.want)
		}
	}
}

// TestNoSecretComesThrough: a secret in a command, a title, a label or an error
// is in no name, file or output.
func TestNoSecretComesThrough(t *testing.T) {
	const key = "sk-HUNTER2abcdefghijklmnop"
	dir := t.TempDir()
	files := map[string]string{
		"a.md": "# Under " + key + "\n\n## Case " + key + "\n\n```bash\nHF_TOKEN=HUNTER2 vllm serve acme/tiny-7b --api-key HUNTER2\n" +
			"OPENAI_API_KEY=HUNTER2 vllm bench serve --base-url https://me:HUNTER2@host/v1 --header \"Authorization=Bearer HUNTER2\" --api-key=HUNTER2 --num-prompts 7\n" +
			"```\n\n```\n\x1b[1m" + strings.ReplaceAll(printed, "\n", "\x1b[0m\n") + "```\n",
		"b.json": `{"model_id": "` + key + `", "label": "--api-key=HUNTER2", "api_key": "HUNTER2", "note": "Bearer HUNTER2HUNTER2HUNTER2", "completed": 1, "duration": 1,
			"request_throughput": 1, "start_times": [0, 0], "ttfts": [0.1, 0], "itls": [[], []], "output_lens": [1, 0], "errors": ["", "401 for ` + key + `"]}`,
	}
	out := filepath.Join(dir, "out")
	args := []string{"import", "--out", out}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	stdout, said := perflabRun(t, console.ExitDone, args...)
	shown := stdout + said
	runs := 0
	err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		shown += path + "\n"
		if err != nil || d.IsDir() {
			if rundir.IsRun(path) {
				runs++
				text, _ := perflabRun(t, console.ExitDone, "report", path, "--format", "md")
				shown += text
			}
			return err
		}
		b, err := os.ReadFile(path)
		shown += string(b)
		return err
	})
	if err != nil || runs != 2 {
		t.Fatalf("%d runs, %v: %s", runs, err, said)
	}
	for line := range strings.Lines(shown) {
		if strings.Contains(strings.ToLower(line), "hunter2") {
			t.Errorf("shown: %s", line)
		}
	}
}

// TestVerdictComesBack: a run that was void is void when its file is imported.
func TestVerdictComesBack(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.txt": printed + "Verdict: void (1 check)\n",
		"b.json": `{"completed": 1, "duration": 1, "model_id": "m", "failures_by_class": {}, "verdict": {"status": "void",
			"checks": [{"name": "dispatch_lag", "status": "void", "text": "late"}]}}`,
	} {
		path, out := filepath.Join(dir, name), filepath.Join(dir, name+".out")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		perflabRun(t, console.ExitDone, "import", path, "--out", out)
		dirs, err := rundir.OpenImport(out)
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%v, %v", dirs, err)
		}
		if v := figuresOf(t, dirs[0]).Verdict; v.Status != result.Voided {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestForeignCallsStayForeign: calls that another client saw do not become
// perflab's by an export, and what they cannot tell stays missing.
func TestForeignCallsStayForeign(t *testing.T) {
	dir := exported(t, result.DefinitionsOf(result.VLLM), threeCalls())
	for _, form := range []string{"csv", "parquet"} {
		file, back := filepath.Join(t.TempDir(), "calls"), filepath.Join(t.TempDir(), "back")
		perflabRun(t, console.ExitDone, "export", dir, "--to", form, "--out", file)
		perflabRun(t, console.ExitDone, "import", file, "--out", back)
		dirs, err := rundir.OpenImport(back)
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%s: %v, %v", form, dirs, err)
		}
		r, err := rundir.OpenRun(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		s := figuresOf(t, dirs[0])
		if r.Header.Imported.Client != "some client" || s.Definition("mean_ttft_ms") != result.FirstMessage {
			t.Errorf("%s: measured by %s, TTFT %q", form, r.Header.Imported.Client, s.Definition("mean_ttft_ms"))
		}
	}
	// guidellm computes its own figures; counts, TTFT and E2E are alike.
	file, back := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "back")
	_, said := perflabRun(t, console.ExitDone, "export", dir, "--to", "guidellm", "--out", file)
	if !strings.Contains(said, "the TTFT is first_message") {
		t.Errorf("said %q", said)
	}
	perflabRun(t, console.ExitDone, "import", file, "--out", back)
	dirs, err := rundir.OpenImport(back)
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v", dirs, err)
	}
	calls := result.Header{}
	own, err := verdict.Summarize(calls, &result.Client{}, result.Options{}, func(yield func(result.Call) bool) {
		for _, c := range threeCalls() {
			if !yield(c) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got := figuresOf(t, dirs[0])
	for _, name := range []string{"completed", "failed", "total_input_tokens", "total_output_tokens", "mean_ttft_ms", "min_ttft_ms", "max_ttft_ms", "mean_stream_ms"} {
		of := strings.Replace(name, "stream", "e2el", 1) // guidellm's end is that of the stream
		if g, ok := got.Figures[of]; !ok || math.Abs(g-own.Figures[name]) > 1e-3*math.Abs(own.Figures[name]) {
			t.Errorf("%s is %v and comes back as %v", name, own.Figures[name], got.Figures[of])
		}
	}
}
