package command

import "testing"

// FuzzRead: whatever stands in a document for a command, reading it ends, and two
// commands can be held against each other.
func FuzzRead(f *testing.F) {
	f.Add("CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-32B -tp 8 --max-num-seqs=64 \\\n --x '{\"a\": 1}'", "python -m sglang.launch_server --model-path m --tp 8")
	f.Add("vllm bench serve --dataset-name random --num-prompts 1000 --random-input-len 1e400", "trtllm-serve serve m")
	f.Add("“vllm” serve 'a", "—tp=nan $(x) `y` | z && w > /dev/null; # c")
	f.Fuzz(func(t *testing.T, a, b string) {
		Split(a)
		x, y := Read(a), Read(b)
		_, _ = x.Key(), x.GPUs()
		Changes(x, y, true)
		ChangedFeatures(x, y, false)
		DifferenceTexts(x.Differences(y))
		x.SharedFlags(y)
		Layout(x)
		ReadBenchmark(a)
		CaptionFlags(a)
		EnginesNamed(a)
		ModelSizes(ModelCore(a))
	})
}
