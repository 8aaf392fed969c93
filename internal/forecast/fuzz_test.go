package forecast

import (
	"os"
	"testing"
)

// FuzzObserve: whatever a list of observations holds, each is resolved or left out with a
// reason.
func FuzzObserve(f *testing.F) {
	f.Add([]byte(`[{"id":"a","command":"vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2","gpu":"h100-sxm","load":{"requests":10,"input":100,"output":10},"figures":{"output_throughput":{"value":100,"half":0.5}}}]`))
	f.Add([]byte(`[{"id":"a","command":"vllm serve 'x","load":{}},{"id":"a"}]`))
	if data, err := os.ReadFile("../calib/testdata/published.json"); err == nil && len(data) < 1<<20 {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<15 {
			return
		}
		IsObservations(data)
		var o Observer
		o.Read("a.json", data)
		for _, x := range o.Omitted {
			if x.Why == "" {
				t.Errorf("%s is left out without a reason", x.Place)
			}
		}
	})
}
