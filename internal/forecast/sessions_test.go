package forecast

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/workload"
)

// TestSessions: what is asked of sessions, and of a closed loop for a time, is answered: their figures, with ranges that
// other draws of them widen, and that no such run is in the calibration.
func TestSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	line := `{"turns":[{"input_tokens":900,"output_tokens":20,"blocks":[1,2,3]},{"input_tokens":1900,"output_tokens":40,"blocks":[1,2,3,4],"idle_s":1}]}` + "\n" +
		`{"turns":[{"input_tokens":300,"output_tokens":90}]}` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	gpu, err := arch.LookupAccelerator("h100-sxm")
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := engine.ParseText("vllm serve Qwen/Qwen3-8B")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Deployments([]Command{{Line: cmd.String(), Command: cmd}}, nil, Hardware{Accelerators: []arch.Accelerator{gpu}, GPUs: 1, Model: arch.LookupModel})
	if err != nil {
		t.Fatal(err)
	}
	c, err := calib.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		spec             workload.Spec
		requests         float64 // 0: as many as there is time for
		line, of, absent string
	}{
		"agents":        {workload.Spec{Dataset: "agents", Path: path, NumPrompts: 6, MaxConcurrency: 2, StartRatio: "0.5"}, 8, "agents, 8 requests, ", "No run of sessions", ""},
		"conversations": {workload.Spec{Dataset: "conversations", NumPrompts: 5, Turns: "3", Rate: 2}, 15, "conversations, 15 requests, ", "No run of sessions", ""},
		"for a time":    {workload.Spec{Dataset: "random", Duration: "5s", MaxConcurrency: 2, RandomOutputLen: 30}, 0, "random, 5s long, 1024 tokens in and 30 out on average", "", "No run of sessions"},
	} {
		w, err := workload.Open(tt.spec.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLoad(w, nil)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Question{Draws: 3, Latency: calib.MeanTPOT}.Answer(&c, d, []Load{l, l})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := table.Rows[0]
		outside := strings.Join(r.Outside, "\n")
		if !strings.HasPrefix(table.Workload, tt.line) || !strings.Contains(outside, tt.of) || tt.absent != "" && strings.Contains(outside, tt.absent) {
			t.Errorf("%s: %s; %s", name, table.Workload, outside)
		}
		n, e := r.Figures["completed"].Value, r.Figures[calib.MeanE2E]
		if tt.requests > 0 && n != tt.requests || n < 6 || e.Low == nil || *e.Low >= e.Value || r.Failed != "" {
			t.Errorf("%s: %.0f requests, %+v, %s", name, n, e, r.Failed)
		}
		if _, has := r.Figures["sessions_per_hour"]; has != w.Conversations() {
			t.Errorf("%s: sessions per hour: %v", name, has)
		}
	}
}

// TestSessionsDrawnAgain: another seed draws the sessions again, and the same one the same.
func TestSessionsDrawnAgain(t *testing.T) {
	w, err := workload.Open(workload.Spec{Dataset: "conversations", NumPrompts: 4, Turns: "2-9", Rate: 2}.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLoad(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	due := func(seed *uint64) (out string) {
		c, err := l.calib.Course(1, seed)
		if err != nil {
			t.Fatal(err)
		}
		for j := range c.Jobs {
			out += j.Arrive.String() + " "
		}
		return out
	}
	if a, b := due(new(uint64(7))), due(new(uint64(8))); a == b || a != due(new(uint64(7))) || a == due(nil) {
		t.Errorf("due at %s and %s", a, b)
	}
}
