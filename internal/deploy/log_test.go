package deploy

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUsageRefusal(t *testing.T) {
	for _, c := range []struct {
		name, log, want string
		ok              bool
	}{
		{"argparse", "INFO 01-01 starting\nusage: vllm serve [model_tag] [options]\nvllm serve: error: unrecognized arguments: --max-seqs 3\n", "unrecognized arguments: --max-seqs 3", true},
		{"argparse without usage", "launch_server.py: error: argument --tp: invalid int value: 'two'\n", "argument --tp: invalid int value: 'two'", true},
		{"click", "Usage: trtllm-serve [OPTIONS] MODEL\nTry 'trtllm-serve --help' for help.\n\nError: No such option: --tp\n", "No such option: --tp", true},
		{"click value", "Error: Invalid value for '--tp_size': 'x' is not a valid integer.\n", "Invalid value for '--tp_size': 'x' is not a valid integer.", true},
		{"panic", "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n", "", false},
		{"fatal", "fatal error: all goroutines are asleep - deadlock!\n", "", false},
		{"other error", "server: error: no route to host\n", "no route to host", false},
		{"python", "python: can't open file 'x.py': [Errno 2] No such file or directory\n", "", false},
		{"empty", "", "", false},
	} {
		if got, ok := usageRefusal(c.log); got != c.want || ok != c.ok {
			t.Errorf("%s: %q %v, want %q %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ argv, env, want string }{
		{"vllm|serve|Qwen/Qwen3-32B|--port|8000", "", "vllm serve Qwen/Qwen3-32B --port 8000"},
		{"vllm|--api-key|s3cret|--tp|2", "HF_TOKEN=s3cret|A=b c", "HF_TOKEN=[redacted] A='b c' vllm --api-key [redacted] --tp 2"},
		{"vllm|--api-key=s3cret|--x", "", "vllm --api-key=[redacted] --x"},
		{"vllm|--api-key|one|two|--tp|2", "", "vllm --api-key [redacted] [redacted] --tp 2"},
		{"env|HF_TOKEN=s3cret|vllm", "", "env HF_TOKEN=[redacted] vllm"},
		{`vllm|--config|{"key=": "it's"}`, "", `vllm --config '{"key=": "it'\''s"}'`},
		{"vllm||--x", "", "vllm '' --x"},
	} {
		var env []string
		if c.env != "" {
			env = strings.Split(c.env, "|")
		}
		if got := commandLine(strings.Split(c.argv, "|"), env); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.argv, got, c.want)
		}
	}
}

func TestTail(t *testing.T) {
	dir := t.TempDir()
	write := func(text string, env ...string) *memberLog {
		t.Helper()
		l, f, err := openLog(dir, "replica-0", []string{"engine", "8000"}, env)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return l
	}
	if got := write("of the first launch\n").tail(); got != "of the first launch\n" {
		t.Errorf("tail %q", got)
	}
	l := write("\x1b[31mkey my-secret\x1b[0m\n", "THE_KEY=my-secret")
	if got, want := l.tail(), "key [redacted]\n"; got != want {
		t.Errorf("tail %q, want %q", got, want)
	}
	if got := write(strings.Repeat("x", tailBytes) + "end").tail(); len(got) != tailBytes || !strings.HasSuffix(got, "end") {
		t.Errorf("tail of a long log has %d bytes", len(got))
	}
	b, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), " engine 8000\n"); n != 3 {
		t.Errorf("%d headers in the log, want 3", n)
	}
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if got := l.tail(); got != "" {
		t.Errorf("tail of a lost log %q", got)
	}
}

// A log holds what an engine writes, of whatever kind and length.
func TestTailOfOddLogs(t *testing.T) {
	dir := t.TempDir()
	const secret = "my-secret-value"
	write := func(pieces ...string) *memberLog {
		t.Helper()
		l, f, err := openLog(dir, "replica-0", []string{"engine"}, []string{"THE_KEY=" + secret})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, p := range pieces {
			if _, err := f.WriteString(p); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	garbage := write("\x00\x01\xff\xfe\x1b[2K\x1b]0;title\x07ok \x1b[?25lé\x80\n\x7fELF\x02").tail()
	if want := "\uFFFDok é\uFFFD\nELF"; garbage != want {
		t.Errorf("tail of garbage %q, want %q", garbage, want)
	}
	bar := "loading:   1%\rloading:  50%\rloading: 100%"
	if got := lastOf(write(bar).tail(), 1); !slices.Equal(got, []string{"loading: 100%"}) {
		t.Errorf("last line of a progress bar %q", got)
	}
	// The tail begins within the secret.
	cut := write(secret+"\n", strings.Repeat("y", tailBytes-5-len("\nend\n")), "\nend\n").tail()
	if strings.Contains(cut, secret[len(secret)-4:]) || !strings.HasSuffix(cut, "end\n") {
		t.Errorf("tail begins with %q", cut[:min(20, len(cut))])
	}
	if err := os.Truncate(filepath.Join(dir, "replica-0.log"), 200<<20); err != nil {
		t.Fatal(err)
	}
	huge := write(strings.Repeat("a line of a large log\n", 1000))
	if err := os.Truncate(huge.path, 400<<20); err != nil { // of this launch alone, with no line in it
		t.Fatal(err)
	}
	if got := huge.tail(); got != "" {
		t.Errorf("tail of nothing that is text %q", got[:min(20, len(got))])
	}
	huge = write(strings.Repeat("a line of a large log\n", 10000), "the last line")
	began := time.Now()
	if got := lastOf(huge.tail(), 2); !slices.Equal(got, []string{"a line of a large log", "the last line"}) || time.Since(began) > time.Second {
		t.Errorf("last lines %q after %v", got, time.Since(began))
	}
}

// A sign is found once it is written, also in two pieces, and in front of much else.
func TestSignWatch(t *testing.T) {
	l, f, err := openLog(t.TempDir(), "replica-0.head", []string{"head is up"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := &textWatch{log: l, text: []byte("head is up")}
	for _, c := range []struct {
		text string
		want bool
	}{{"", false}, {"the", false}, {" head", false}, {" is", false}, {" up" + strings.Repeat("\nmore", tailBytes), true}} {
		if _, err := f.WriteString(c.text); err != nil {
			t.Fatal(err)
		}
		if got := w.seen(); got != c.want {
			t.Errorf("after %.10q: %v, want %v", c.text, got, c.want)
		}
	}
}

func TestLastOf(t *testing.T) {
	if diff := cmp.Diff([]string{"b", " c"}, lastOf("a\nb\n\n c \r\n  \n", 2)); diff != "" {
		t.Error(diff)
	}
	if got := lastOf("\n \n", 2); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if got := quoteLine(strings.Repeat("é", 400)); len([]rune(got)) != 303 {
		t.Errorf("quoted line has %d characters", len([]rune(got)))
	}
}

// TestConceal: when an engine has ended, its log has no secret, whoever may read the
// directory may read it, and all else is as it was written.
func TestConceal(t *testing.T) {
	dir := t.TempDir()
	const text = "starts\r\x1b[1mkey my-long-secret\x1b[0m\nbad \xff byte, http://u:pw@h\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nin base64 %s, no line end"
	coded := base64.StdEncoding.EncodeToString([]byte("me:my-long-secret"))
	l, f, err := openLog(dir, "replica-0", []string{"engine"}, []string{"THE_KEY=my-long-secret"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, text, coded)
	f.Close()
	if info, err := os.Stat(l.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("while it is written: %v, %v", info.Mode(), err)
	}
	for range 2 { // the second time there is nothing to replace
		if err := l.conceal(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(l.path)
		_, got, _ := strings.Cut(string(b), "\n")
		want := "starts\r\x1b[1mkey [redacted]\x1b[0m\nbad \xff byte, http://u:[redacted]@h\n[redacted]\n[redacted]\n[redacted]\nin base64 bWU6[redacted]Q=, no line end"
		if err != nil || got != want {
			t.Errorf("the log has %q, want %q: %v", got, want, err)
		}
	}
	if info, err := os.Stat(l.path); err != nil || info.Mode().Perm()&0o400 == 0 || info.Mode().Perm() == 0o600 {
		t.Errorf("afterwards: %v, %v", info.Mode(), err)
	}
}
