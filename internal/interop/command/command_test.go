package command

import (
	"strings"
	"testing"
)

// TestSplit compares with what a POSIX shell makes of lines.
func TestSplit(t *testing.T) {
	for line, want := range map[string]string{
		`a 'b c' "d e"`:        "a|b c|d e",
		`a\ b --x="y"z`:        `a b|--x=yz`,
		`a # b`:                "a",
		`a#b "" c`:             "a#b||c",
		`a>b|c && d`:           "a|>|b|||c|&|d",
		`"a \"b\" $c"`:         `a "b" $c`,
		`--x={"a":"b"}`:        "--x={a:b}",
		`'unclosed`:            "unclosed",
		"a\u00a0b c":           "a\u00a0b|c",
		`x\`:                   `x\`,
		`export A="b c"; vllm`: "export|A=b c|;|vllm",
	} {
		var got []string
		for _, w := range Split(line) {
			if w.Operator {
				got = append(got, w.Raw)
				continue
			}
			got = append(got, w.Text())
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", line, strings.Join(got, "|"), want)
		}
	}
}

// TestChanges: spellings of one setup are equal, and what differs is told.
func TestChanges(t *testing.T) {
	base := Read("vllm serve acme/Foo-8B -tp 4 --max-model-len 4096 --port 80")
	for text, want := range map[string]string{
		"vllm serve Foo-8B --tensor-parallel-size=4 --max_model_len=4096":                         "",
		"docker exec -it x bash -c “vllm serve acme/Foo-8B -tp 4 --max-model-len 4096”":           "",
		`docker exec x bash -c "vllm serve acme/Foo-8B -tp 4 --max-model-len 4096"`:               "",
		"python -m vllm.entrypoints.openai.api_server --model Foo-8B --tp 4 --max-model-len 4096": "",
		"vllm serve Foo-8B --max-model-len 4096":                                                  "layout dropped (tp 4)",
		"vllm serve Foo-8B -tp 8 --max-model-len 8192":                                            "--max-model-len 4096 -> 8192; layout tp 4 -> tp 8",
		"VLLM_X=1 vllm serve Foo-8B -tp 4 --max-model-len 4096 --enable-expert-parallel":          "VLLM_X added (VLLM_X 1); expert parallelism added (enable-expert-parallel)",
		"trtllm-serve Foo-8B-FP8 --tp_size 4 --max_seq_len 4096":                                  "engine vLLM -> TensorRT-LLM; model acme/Foo-8B -> Foo-8B-FP8",
	} {
		if got := strings.Join(Texts(Changes(base, Read(text), false)), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestDifferences: the flags that two commands differ in are told as they are
// written, and the GPUs that one starts an engine on are counted.
func TestDifferences(t *testing.T) {
	base := Read("sglang serve acme/Foo-8B --tp 4 --context-length 4096 --port 80")
	for text, want := range map[string]struct {
		flags string
		gpus  int
	}{
		"python -m sglang.launch_server --model-path Foo-8B --tp-size=4 --context-length 4096 --dp 1":                 {"", 4},
		"python -m sglang.launch_server --model Foo-8B --tp 4 --context-length 4096 --reasoning-parser x":             {"", 4},
		"sglang serve Foo-8B --tp 4 --dp-size 2 --enable-dp-attention":                                                {"--dp-size, --enable-dp-attention, --context-length", 4},
		"SGLANG_X=1 sglang serve b/Foo-7B --tp 4 --dp-size 2 --context-length 4096 --speculative-config '{\"n\": 3}'": {"the model (Foo-8B, Foo-7B), SGLANG_X, --dp-size, --speculative-config", 8},
		"vllm serve Foo-8B --tensor-parallel-size N":                                                                  {"the engine", 0},
	} {
		c := Read(text)
		if got := strings.Join(DifferenceTexts(c.Differences(base)), ", "); got != want.flags || c.GPUs() != want.gpus {
			t.Errorf("%s: %q on %d, want %v", text, got, c.GPUs(), want)
		}
	}
}

// TestBraces compares with bash.
func TestBraces(t *testing.T) {
	for word, want := range map[string]string{
		`{a,b}`: "a b", `x{a,b}y`: "xay xby", `{a}`: "{a}", `${a,b}`: "${a,b}", `'{a,b}'`: "{a,b}", `{a,b}{c,d}`: "ac ad bc bd",
		`{"a":{"b":1,"c":2},"d":3}`: "a:b:1 a:c:2 d:3", `{a,{b,c}}`: "a b c", `{a,b`: "{a,b", `a,b}`: "a,b}", `{,x}`: " x",
	} {
		var got []string
		for _, p := range expandBraces(Split(word)[0].Runes) {
			got = append(got, Plain(p))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", word, strings.Join(got, " "), want)
		}
	}
}

// TestEnginesNamed: an engine's part that another engine uses is not the engine.
func TestEnginesNamed(t *testing.T) {
	for text, want := range map[string]string{
		"### SGLang and vLLM": "vllm sglang", "Quantization in TensorRT-LLM": "trtllm", "vLLM backend": "vllm",
		"the trtllm all-reduce backend": "", "trtllm_mha attention": "", "TensorRT-LLM": "trtllm", "llama.cpp": "llamacpp",
	} {
		if got := strings.Join(EnginesNamed(text), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestWhereItRuns: what a command runs in, and on which devices, is no part of
// how it serves.
func TestWhereItRuns(t *testing.T) {
	base := Read("vllm serve acme/Foo-8B -tp 4")
	for text, want := range map[string]string{
		"CUDA_VISIBLE_DEVICES=0,1,2,3 HF_TOKEN=x vllm serve acme/Foo-8B -tp 4":                                                "",
		"docker run --gpus all -p 80:8000 --ipc=host -v /a:/b vllm/vllm-openai:v0.11.0 --model acme/Foo-8B -tp 4":             "",
		"docker run --rm --gpus all vllm/vllm-openai:v0.11.0 acme/Foo-8B --tensor-parallel-size 4 --max-num-seqs 8":           "--max-num-seqs",
		"docker run --rm lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path acme/Foo-8B --tp 4 --port 30000": "the engine",
		"VLLM_USE_V1=0 vllm serve acme/Foo-8B -tp 4":                                                                          "VLLM_USE_V1",
	} {
		if got := strings.Join(DifferenceTexts(Read(text).Differences(base)), ", "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
