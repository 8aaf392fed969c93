package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// askingSGLang has SGLang's own code parse command lines and resolve its arguments, as it
// does before it starts an engine. A process of its own for each: what is resolved once
// stays in the process.
const askingSGLang = `
import contextlib, io, json, os, sys, traceback
from sglang.srt.arg_groups.overrides import resolving_view
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.server_args import prepare_server_args

def settle(argv):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            s = prepare_server_args(argv)
            s.resolve_once()
            s.check_server_args()
            c, m = resolving_view(s), ModelConfig.from_server_args(s)
        chunk = c.chunked_prefill_size
        return dict(
            Seqs=c.max_running_requests or 0, Batched=chunk if chunk > 0 else c.max_prefill_tokens, MaxLen=m.context_len,
            Block=c.page_size, Prefix=not c.disable_radix_cache, Chunked=chunk > 0, Overlap=not c.disable_overlap_schedule,
            MemoryShare=c.mem_fraction_static)
    except SystemExit:
        return dict(Refused=said.getvalue())
    except Exception:
        return dict(Refused=traceback.format_exc())

for line in sys.stdin:
    sys.stdout.flush()
    if os.fork() == 0:
        print("ANSWER " + json.dumps(settle(json.loads(line))), flush=True)
        os._exit(0)
    os.wait()
`

// TestRealSGLang holds the rules and defaults for SGLang on a CPU against SGLang's own,
// which PERFLAB_SGLANG, the path of a python3 with the package sglang, names
// (scripts/make-sglang-cpu.py makes one). What follows from memory is not known here.
func TestRealSGLang(t *testing.T) {
	python := os.Getenv("PERFLAB_SGLANG")
	if python == "" {
		t.Skip("PERFLAB_SGLANG (the path of python3 in an environment of SGLang for CPUs) is not set")
	}
	const (
		later = "SGLang's arguments take it; what it does then was not tried"
		spelt = "the parameter is written as this version spells it"
	)
	lines := []struct{ args, differ string }{ // why ours may differ
		{"", ""},
		{"--max-running-requests 8", ""},
		{"--max-running-requests 0", later},
		{"--max-running-requests -1", later},
		{"--max-running-requests many", ""},
		{"--chunked-prefill-size 512", ""},
		{"--chunked-prefill-size 4k", ""},
		{"--chunked-prefill-size -1", ""},
		{"--context-length 2048", ""},
		{"--context-length 8193", ""},
		{"--context-length 0", later},
		{"--mem-fraction-static 0.5", ""},
		{"--mem-fraction-static 0", later},
		{"--mem-fraction-static 1.2", later},
		{"--page-size 16", ""},
		{"--page-size 0", ""},
		{"--page-size 16 --chunked-prefill-size 500", ""},
		{"--disable-radix-cache", ""},
		{"--disable-overlap-schedule", ""},
		{"--tp 2", ""},
		{"--tp 3", later},
		{"--tp 16", later},
		{"--pp-size 2", ""},
		{"--pp 2", spelt},
		{"--pp-size 16", later},
		{"--dp 2", ""},
		{"--dp 0", later},
		{"--tp 2 --dp 2 --enable-dp-attention", ""},
		{"--tp 2 --dp 3 --enable-dp-attention", ""},
		{"--tp 2 --ep-size 2", ""},
		{"--kv-cache-dtype fp8_e5m2", ""},
		{"--kv-cache-dtype fp9", ""},
		{"--quantization nope", ""},
		{"--speculative-algorithm NGRAM", ""},
		{"--speculative-algorithm NGRAM --speculative-num-draft-tokens 4", ""},
		{"--speculative-algorithm NOPE", ""},
		{"--attention-backend nope", ""},
		{"--attention-backend torch_native", ""},
		{"--enable-two-batch-overlap", ""},
		{"--enable-mixed-chunk", ""},
		{"--schedule-policy lpm", ""},
		{"--schedule-policy nope", ""},
		{"--schedule-conservativeness 0.3", ""},
		{"--stream-interval 0", later},
		{"--cuda-graph-max-bs 16", spelt},
		{"--cuda-graph-max-bs-decode 16", ""},
		{"--disable-cuda-graph", ""},
		{"--max-total-tokens 1024", ""},
		{"--moe-runner-backend nope", ""},
		{"--nope 3", ""},
	}
	dir, model := tinyLlama(t)
	var argvs [][]string
	for _, l := range lines {
		argvs = append(argvs, append([]string{"--model-path", dir, "--load-format", "dummy", "--dtype", "bfloat16", "--device", "cpu"}, strings.Fields(l.args)...))
	}
	version, answers := ask(t, python, "sglang", []string{"SGLANG_USE_CPU_ENGINE=1", "HF_HUB_OFFLINE=1"}, askingSGLang, argvs)
	for i, theirs := range answers {
		ours := outlined(t, version, model, append([]string{filepath.Base(python), "-m", "sglang.launch_server"}, argvs[i]...))
		if ours.Batched == 0 {
			theirs.Batched = 0
		}
		if ours.MemoryShare == 0 {
			theirs.MemoryShare = 0
		}
		judge(t, "sglang", lines[i].args, lines[i].differ, theirs, ours)
	}
}
