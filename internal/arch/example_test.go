package arch_test

import (
	"fmt"

	"perflab/internal/arch"
)

func Example() {
	m, err := arch.LookupModel("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f GB per GPU\n", float64(m.WeightBytesPerGPU(4, 1, 1))/1e9)
	fmt.Println(m.KVBytesPerTokenRank(2, 4, 1), "bytes of KV cache per token and GPU")
	// Output:
	// 59.1 GB per GPU
	// 48128 bytes of KV cache per token and GPU
}
