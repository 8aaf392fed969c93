package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/arch"
)

// asking has vLLM's own code parse command lines and make configurations of them, as
// vllm serve does before it starts an engine: a line of JSON in and one out for each.
const asking = `
import contextlib, io, json, sys
try:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
except ImportError:
    from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
for line in sys.stdin:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = parser.parse_args(json.loads(line))
            validate_parsed_serve_args(args)
            c = AsyncEngineArgs.from_cli_args(args).create_engine_config(UsageContext.OPENAI_API_SERVER)
        answer = dict(
            Seqs=c.scheduler_config.max_num_seqs, Batched=c.scheduler_config.max_num_batched_tokens,
            MaxLen=c.model_config.max_model_len, Block=c.cache_config.block_size,
            Prefix=bool(c.cache_config.enable_prefix_caching), Chunked=bool(c.scheduler_config.enable_chunked_prefill),
            Overlap=bool(c.scheduler_config.async_scheduling), KVSpace=c.cache_config.kv_cache_memory_bytes or 0,
            MemoryShare=c.cache_config.gpu_memory_utilization)
    except SystemExit:
        answer = dict(Refused=said.getvalue())
    except Exception as e:
        answer = dict(Refused=type(e).__name__ + ": " + str(e))
    print("ANSWER " + json.dumps(answer), flush=True)
`

// settled is what both make of a command line.
type settled struct {
	Seqs, Batched, MaxLen, Block int
	Prefix, Chunked, Overlap     bool
	KVSpace                      int64
	MemoryShare                  float64
	Refused                      string
}

// TestRealVLLM holds the rules and defaults for vLLM on a CPU against vLLM's own, which
// PERFLAB_VLLM, the path of the program vllm, names (scripts/make-vllm-cpu.py makes one).
func TestRealVLLM(t *testing.T) {
	vllm := os.Getenv("PERFLAB_VLLM")
	if vllm == "" {
		t.Skip("PERFLAB_VLLM (the path of vllm in an environment of vLLM for CPUs) is not set")
	}
	lines := []struct{ args, differ string }{ // why ours may differ
		{"", ""},
		{"--max-num-batched-tokens 64 --max-num-seqs 128", ""},
		{"--max-num-batched-tokens 64 --max-num-seqs 64", ""},
		{"--max-num-seqs 4096", ""},
		{"--max-num-seqs 4096 --max-num-batched-tokens 4096", ""},
		{"--max-num-seqs 0", ""},
		{"--max-num-seqs -1", ""},
		{"--max-num-seqs many", ""},
		{"--max-num-batched-tokens 0", ""},
		{"--max-num-batched-tokens 4k", ""},
		{"--max-model-len 8192", ""},
		{"--max-model-len 8193", ""},
		{"--max-model-len 0", ""},
		{"--max-model-len auto", ""},
		{"--max-model-len 4k", ""},
		{"--max-model-len 2K", ""},
		{"--no-enable-chunked-prefill", ""},
		{"--no-enable-chunked-prefill --max-num-batched-tokens 1024", ""},
		{"--no-enable-prefix-caching", ""},
		{"-tp 2", ""},
		{"-tp 3", ""},
		{"-tp 16", ""},
		{"-pp 2", ""},
		{"-pp 16", "stages without layers are found when the model is loaded"},
		{"-dp 2", ""},
		{"-dp 0", ""},
		{"-tp 2 -dcp 2", ""},
		{"-tp 8 -dcp 2", ""},
		{"-tp 8 -dcp 4", ""},
		{"-dcp 2", ""},
		{"--enable-expert-parallel", ""},
		{"--enable-eplb", ""},
		{"--enable-eplb --enable-expert-parallel", ""},
		{"--enable-dbo", ""},
		{`--speculative-config {"method":"mtp","num_speculative_tokens":1}`, ""},
		{`--speculative-config {"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4}`, ""},
		{`--speculative-config {"method":"ngram","num_speculative_tokens":0,"prompt_lookup_max":4}`, ""},
		{`--speculative-config {"method":"eagle","num_speculative_tokens":3}`, ""},
		{`--speculative-config {"method":"nope","num_speculative_tokens":3}`, "every version brings methods"},
		{`--speculative-config {"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4} --async-scheduling`, ""},
		{`--speculative-config {"method":"ngram","num_speculative_tokens":5,"prompt_lookup_max":4} --max-cudagraph-capture-size 4`, ""},
		{"--per-request-spec-decode-metrics summary", ""},
		{"--per-request-spec-decode-metrics none", ""},
		{"--per-request-spec-decode-metrics all", ""},
		{`--speculative-config {"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4} --per-request-spec-decode-metrics detailed`, ""},
		{"--async-scheduling", ""},
		{"--quantization awq", ""},
		{"--quantization nope", ""},
		{"--quantization fp8", "the missing kernel is found when the weights are loaded"},
		{"--kv-cache-dtype fp8", ""},
		{"--kv-cache-dtype fp9", ""},
		{"--kv-cache-memory-bytes 1G", ""},
		{"--gpu-memory-utilization 0.5", ""},
		{"--gpu-memory-utilization 0", ""},
		{"--gpu-memory-utilization 1.2", ""},
		{"--block-size 16", ""},
		{"--block-size 7", ""},
		{"--block-size 0", ""},
		{"--performance-mode throughput", ""},
		{"--performance-mode fast", ""},
		{"--stream-interval 0", ""},
		{"--scheduling-policy sjf", ""},
		{"--all2all-backend nope", ""},
		{"--enforce-eager", ""},
		{"-O3", ""},
		{"--nope 3", ""},
	}
	dir, model := tinyLlama(t)
	var argvs [][]string
	for _, l := range lines {
		argvs = append(argvs, append([]string{"--model", dir, "--dtype", "bfloat16"}, strings.Fields(l.args)...))
	}
	version, answers := askVLLM(t, vllm, argvs)
	for i, theirs := range answers {
		judge(t, "vllm", lines[i].args, lines[i].differ, theirs, outlined(t, version, model, append([]string{"vllm", "serve"}, argvs[i]...)))
	}
}

// tinyLlama is a directory with the configuration of the examples' model.
func tinyLlama(t *testing.T) (dir string, m arch.Model) {
	t.Helper()
	text, err := os.ReadFile("../../examples/tiny-llama.json")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err = arch.ParseConfig(dir, strings.NewReader(string(text))); err != nil {
		t.Fatal(err)
	}
	return dir, m
}

// judge holds what is made of a command line here against what the engine itself makes of
// it. differ is why one may refuse what the other takes.
func judge(t *testing.T, engine, args, differ string, theirs, ours settled) {
	t.Helper()
	switch {
	case ours.Refused != "" && theirs.Refused != "":
		if class, ok := ClassOf(engine, theirs.Refused); !ok {
			t.Errorf("%q: no failure is known that says %q", args, theirs.Refused)
		} else {
			t.Logf("%q: refused, %s: %s", args, class, ours.Refused)
		}
	case ours.Refused != theirs.Refused && differ != "":
		t.Logf("%q: %s", args, differ)
	case ours.Refused != "":
		t.Errorf("%q: the engine takes it, and here it is refused: %s", args, ours.Refused)
	case theirs.Refused != "":
		t.Errorf("%q: the engine refuses what is taken here: %s", args, theirs.Refused)
	default:
		if d := cmp.Diff(theirs, ours); d != "" {
			t.Errorf("%q (-theirs +ours):\n%s", args, d)
		}
	}
}

// outlined is what is made here of a command line on a host with many CPUs.
func outlined(t *testing.T, version string, m arch.Model, argv []string) settled {
	t.Helper()
	host, err := arch.LookupAccelerator("cpu")
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := Parse(argv)
	if err != nil {
		return settled{Refused: err.Error()}
	}
	cmd.Version = version
	c, err := cmd.Outline(m, host, 64)
	if r, ok := errors.AsType[*Rejection](err); ok {
		return settled{Refused: r.Rule + ": " + r.Reason}
	}
	if err != nil {
		t.Errorf("%q: %v", argv, err)
	}
	return settled{Seqs: c.Seqs, Batched: c.Batched, MaxLen: c.MaxLen, Block: c.Block, Prefix: c.Prefix, Chunked: c.Chunked, Overlap: c.Overlap, KVSpace: c.KVSpace, MemoryShare: c.MemoryShare}
}

// askVLLM has the vLLM beside the program settle each of the command lines.
func askVLLM(t *testing.T, program string, argvs [][]string) (version string, answers []settled) {
	t.Helper()
	env := []string{"VLLM_TARGET_DEVICE=cpu", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "VLLM_LOGGING_LEVEL=ERROR", "VLLM_CPU_KVCACHE_SPACE="}
	return ask(t, filepath.Join(filepath.Dir(program), "python"), "vllm", env, asking, argvs)
}

// ask has a Python run a script that reads command lines of its engine, the package, from
// standard input, each a line of JSON, and answers each with one.
func ask(t *testing.T, python, pkg string, env []string, script string, argvs [][]string) (version string, answers []settled) {
	t.Helper()
	run := func(stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", python, err)
		}
		return string(out)
	}
	version = strings.TrimSpace(run("", "-c", "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))", pkg))
	var in strings.Builder
	for _, argv := range argvs {
		b, err := json.Marshal(argv)
		if err != nil {
			t.Fatal(err)
		}
		in.WriteString(string(b) + "\n")
	}
	for lines := bufio.NewScanner(strings.NewReader(run(in.String(), "-c", script))); lines.Scan(); {
		answer, ok := strings.CutPrefix(lines.Text(), "ANSWER ")
		if !ok {
			continue
		}
		var s settled
		if err := json.Unmarshal([]byte(answer), &s); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, s)
	}
	if len(answers) != len(argvs) {
		t.Fatalf("%s settled %d of %d command lines", pkg, len(answers), len(argvs))
	}
	return version, answers
}
