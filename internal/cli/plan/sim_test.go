package plan

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
	"perflab/internal/cli/console"
	"perflab/internal/engine"
)

func parse(t *testing.T, line string) engine.Command {
	t.Helper()
	c, err := engine.Parse(strings.Fields(line))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A command is judged in the spellings that were typed, by the version that was given.
func TestTyped(t *testing.T) {
	const line = "python3 -m sglang.launch_server --model-path M --cuda-graph-max-bs-decode 64"
	for version, want := range map[string]string{"": "", "0.5.23": "", "0.5.9": "is not in SGLang 0.5.9: write --cuda-graph-max-bs"} {
		c, err := typed(strings.Fields(line), version)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
		if c.Params[engine.GraphMax] != "64" || c.Version != version {
			t.Errorf("%q: read as %+v", version, c)
		}
	}
	if _, err := typed([]string{"vllm", "serve", "M", "--nope"}, "0.17"); err == nil {
		t.Error("an unknown flag passes")
	}
}

// A simulator is not offered to the network unless its command asks for that.
func TestListenHost(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve M":                  "127.0.0.1",
		"vllm serve M --host localhost": "127.0.0.1",
		"vllm serve M --host 0.0.0.0":   "0.0.0.0",
		"sglang serve --model M":        "127.0.0.1",
		"trtllm-serve M":                "127.0.0.1",
	} {
		if got := listenHost(parse(t, line).Host); got != want {
			t.Errorf("%s: listens on %s, want %s", line, got, want)
		}
	}
}

// What of a command changes nothing is said, and no secret is.
func TestSimNotes(t *testing.T) {
	cfg := engine.Config{GPUs: 2, GPU: arch.Accelerator{Title: "H"}}
	head := "SIMULATED on 2 x H, listening on http://a:1 only"
	for line, want := range map[string][]string{
		"vllm serve M --max-num-seqs 4":                                                   {head},
		"vllm serve M --enable-dbo --api-key s3cret":                                      {head, "WARNING not simulated, figures are as without: --enable-dbo"},
		"VLLM_API_KEY=s3cret A=s3cret vllm serve M --config f":                            {head, "WARNING not simulated, figures are as without: --config", "WARNING not simulated, the environment has no effect: A"},
		"trtllm-serve M --extra_llm_api_options f.yaml":                                   {head, "WARNING not simulated, figures are as without: --extra_llm_api_options"},
		"sglang serve --model M --schedule-policy lpm --page-size 16 --stream-interval 5": {head, "WARNING not simulated, figures are as without: --schedule-policy --stream-interval"},
	} {
		if d := cmp.Diff(want, simNotes(parse(t, line), cfg, "a:1")); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
	cfg.Spec = "ngram"
	if got := strings.Join(simNotes(parse(t, "vllm serve M"), cfg, "a:1"), " "); !strings.Contains(got, "speculation by ngram") {
		t.Errorf("%s", got)
	}
}

func TestAPIKey(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve M":                          "",
		"vllm serve M --api-key k":              "k",
		"VLLM_API_KEY=e vllm serve M":           "e",
		"sglang serve --model M --api-key=k":    "k",
		"VLLM_API_KEY=e sglang serve --model M": "",
	} {
		if got := apiKey(parse(t, line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Refusals: what is wrong with our own flags is a usage error of ours, what is
// wrong with the command is refused as the engine does.
func TestSimRefuses(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		code       int // 0: a usage error of ours
	}{
		{"--gpus 0 -- vllm serve Qwen/Qwen3-8B", "at least one", 0},
		{"--gpu h101 -- vllm serve Qwen/Qwen3-8B", "unknown accelerator", 0},
		{"-- vllm bench serve", "not a serving command", 0},
		{"-- vllm serve --config f.yaml", "name the model", 0},
		{"-- vllm serve no/such", "--model-config", 0},
		{"-- llama-server -m m.gguf", "llama.cpp is not modelled", 0},
		{"--gpu cpu -- vllm serve Qwen/Qwen3-8B", "nothing is known of CPU of the host", 0},
		{"-- vllm serve Qwen/Qwen3-8B --port 70000", "70000 is not a port", 2},
		{"-- vllm serve Qwen/Qwen3-8B -tp 2", "World size (2)", 1},
	} {
		var stderr bytes.Buffer
		c := NewSim(console.Env{Stdout: &stderr, Stderr: &stderr})
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(strings.Fields(tt.line))
		err := c.ExecuteContext(t.Context())
		if tt.code == 0 {
			if _, ok := errors.AsType[console.UsageError](err); !ok || !strings.Contains(console.InFlags(err), tt.want) {
				t.Errorf("%s: %s, want a usage error with %q", tt.line, console.InFlags(err), tt.want)
			}
			continue
		}
		if e, ok := errors.AsType[console.ExitError](err); !ok || e.Code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%s: %v, %q", tt.line, err, stderr.String())
		}
	}
}
