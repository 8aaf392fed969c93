package doc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrapCommand(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"vllm serve x -tp 4", "vllm serve x -tp 4"},
		{"python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B-Instruct-2507 --tp-size 8",
			"python3 -m sglang.launch_server \\\n  --model-path Qwen/Qwen3-235B-A22B-Instruct-2507 \\\n  --tp-size 8"},
		{`vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 --x '{"a": -1, "b": "c \" --d"}' --y "e --f"`,
			"vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 \\\n  --x '{\"a\": -1, \"b\": \"c \\\" --d\"}' \\\n  --y \"e --f\""},
		{`vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 --x "a \" --b" --path with\ --space --y z`,
			"vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 \\\n  --x \"a \\\" --b\" \\\n  --path with\\ --space \\\n  --y z"},
		{"cat > f.yaml <<'EOF'\nlong: -1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11 -12 -13 -14 -15 -16 -17 -18 -19 -20 -21 -22\nEOF\ntrtllm-serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 --extra_llm_api_options f.yaml",
			"cat > f.yaml <<'EOF'\nlong: -1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11 -12 -13 -14 -15 -16 -17 -18 -19 -20 -21 -22\nEOF\ntrtllm-serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 \\\n  --extra_llm_api_options f.yaml"},
	} {
		if d := cmp.Diff(c.want, WrapCommand(c.in)); d != "" {
			t.Errorf("wrap %s (-want +got):\n%s", c.in, d)
		}
	}
}
