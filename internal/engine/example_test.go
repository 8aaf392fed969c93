package engine_test

import (
	"fmt"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

func Example() {
	cmd, err := engine.Parse([]string{"vllm", "serve", "Qwen/Qwen3-32B", "-tp", "4"})
	if err != nil {
		panic(err)
	}
	model, err := arch.LookupModel(cmd.Model)
	if err != nil {
		panic(err)
	}
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		panic(err)
	}
	cfg, err := cmd.Resolve(model, gpu, 8)
	if err != nil {
		panic(err)
	}
	tokens, err := cfg.KVTokens()
	if err != nil {
		panic(err)
	}
	fmt.Println(cmd)
	fmt.Println(cfg.TP, cfg.Seqs, cfg.Replicas(8), tokens)
	// Output:
	// vllm serve Qwen/Qwen3-32B -tp 4
	// 4 1024 2 881024
}
