package logs

import (
	"math"
	"strings"
	"testing"

	"perflab/internal/engine"
	"perflab/internal/redact"
)

// FuzzFacts: facts are numbers of a kind that is listed, whatever the log.
func FuzzFacts(f *testing.F) {
	for _, name := range []string{"start.log", "start-verbose.log", "refused-context.log"} {
		f.Add(recordedLog(f, name))
	}
	f.Add("INFO GPU KV cache size: 1,234 tokens\nGraph capturing finished in 2 secs, took -0.1 GiB\nRunning: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 3.1%")
	f.Add("max_total_num_tokens=5, chunked_prefill_size=-1, max_prefill_tokens=1, max_running_requests=2, context_len=3, available_gpu_mem=1.2 GB\n#retracted_reqs: 3")
	f.Add("Allocated 9e99 GiB for max tokens in paged KV cache (99999999999999999999999)\nnum_scheduled_requests: 7")
	f.Fuzz(func(t *testing.T, log string) {
		for _, e := range engine.All() {
			facts := Read(e.Name, log)
			if rows := facts.Rows(); len(rows) != len(facts.Values) {
				t.Errorf("%s: %v has a fact of no kind", e.Name, facts.Values)
			}
			for name, v := range facts.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %s is %v", e.Name, name, v)
				}
			}
		}
	})
}

// FuzzDiagnose: a failure is a line of the log with a class that is listed; what is
// refused is so in both answers; and a repair changes parameters that there are.
func FuzzDiagnose(f *testing.F) {
	for _, name := range []string{"start.log", "refused-flag.log", "refused-v-cache.log", "broken-port.log"} {
		f.Add(recordedLog(f, name), "8", "0.9")
	}
	for _, line := range []string{
		"ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128.",
		"torch.OutOfMemoryError: CUDA out of memory.", "AssertionError: 40 is not divisible by 6", "mem_fraction_static=0.85\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
		"Total number of attention heads (40) must be divisible by tensor parallel size (6)", "estimated maximum model length is 17", "RuntimeError: CUDA error: no kernel image is available for execution",
	} {
		f.Add("INFO x\n"+line+"\nEngineCore failed to start.", "8", "0.9")
	}
	f.Fuzz(func(t *testing.T, log, tp, share string) {
		for _, e := range engine.All() {
			fail, ok := Diagnose(e.Name, log)
			line, refused := refusal(e.Name, log)
			if !ok {
				if refused {
					t.Errorf("%s refuses %q and does not diagnose it", e.Name, log)
				}
				continue
			}
			c, known := classes()[fail.Class]
			if !known || fail.Advice == "" || refused && (c.Kind == Infrastructure || line == "") {
				t.Errorf("%s: %+v, refused %v", e.Name, fail, refused)
			}
			if !strings.Contains(redact.Plain(log), fail.Line) {
				t.Errorf("%s: %q is no line of %q", e.Name, fail.Line, log)
			}
			cmd := engine.Command{Engine: e.Name, Model: "M", Params: map[string]string{engine.TP: tp, engine.MemoryShare: share, engine.MaxModelLen: tp, engine.MaxNumSeqs: share}}
			for name := range fail.RepairFor(cmd) {
				if err := engine.KnownParam(name); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
