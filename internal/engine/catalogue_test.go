package engine

import (
	"slices"
	"testing"
)

// TestCatalogue holds each engine's parameters against its list of flags and the
// canonical names.
func TestCatalogue(t *testing.T) {
	names := []string{TP, PP, DP, ExpertParallel, MaxNumSeqs, MaxBatched, MaxModelLen, MemoryShare, KVDtype, Quantization, PrefixCaching,
		ChunkedPrefill, Speculative, GraphMax, Eager, PerfMode, BlockSize, AttentionDP, MoEBackend, StreamInterval, Overlap, CapacityPolicy,
		MicroBatch, ContextSize, Threads, ThreadsBatch, FlashAttention, GPULayers}
	for _, e := range All() {
		table := flagTables()[e.Name]
		for _, name := range names {
			if err := KnownParam(name); err != nil {
				t.Error(err)
			}
			if _, ok := e.Param(name); !ok {
				t.Errorf("%s has no row for %s", e.Name, name)
			}
		}
		for i := range e.Params {
			p := &e.Params[i]
			if p.Doc == "" {
				t.Errorf("%s %s: no doc", e.Name, p.Name)
			}
			for _, f := range append(slices.Clone(p.Flags), p.Off...) {
				ref, ok := table[f]
				if !ok || ref.def == nil || ref.param != p {
					t.Errorf("%s %s: %s is not a flag of the engine", e.Name, p.Name, f)
				}
			}
			if _, ok := keyTables()[e.Name][p.Key]; p.Key != "" && (e.file == nil || !ok) {
				t.Errorf("%s %s: %s is no key of the engine's configuration file", e.Name, p.Name, p.Key)
			}
			for _, value := range p.Ladder {
				if _, err := New(e.Name, "M", map[string]string{p.Name: value}, nil); err != nil {
					t.Errorf("%s %s=%s of the ladder: %v", e.Name, p.Name, value, err)
				}
			}
		}
		for _, name := range []string{"running", "waiting", "kv_usage"} {
			if len(e.Metrics[name]) == 0 && !(e.Name == "llamacpp" && name == "kv_usage") {
				t.Errorf("%s publishes no %s", e.Name, name)
			}
		}
	}
}

func TestByName(t *testing.T) {
	for _, e := range All() {
		if got, err := ByName(e.Name); err != nil || got != e {
			t.Errorf("%s: %v %v", e.Name, got, err)
		}
	}
}
