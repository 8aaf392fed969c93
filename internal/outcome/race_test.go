package outcome

import (
	"encoding/json"
	"testing"

	"perflab/internal/result"
)

// TestRaceOlderKeys: a study.json that has the older names of candidates and
// predictions is read as one that has today's.
func TestRaceOlderKeys(t *testing.T) {
	var r Race
	text := `{"noise":{"between":0.01,"launches":4},"arms":[{"label":"vLLM","engine":"vllm","state":"carried"}],"foretold":[{"engine":"vllm","n":3,"bias":0,"scale":1,"error":0.1}],"phases":[]}`
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Candidates) != 1 || r.Candidates[0].Label != "vLLM" || len(r.Predictions) != 1 || r.Noise.Launches != 4 {
		t.Errorf("read %+v", r)
	}
}

func TestLoadSeconds(t *testing.T) {
	r := Run{Summary: result.Summary{Figures: map[string]float64{"duration": 3}}}
	if r.LoadSeconds() != 3 {
		t.Error(r.LoadSeconds())
	}
	if r.Search = (&result.Search{LoadS: 40}); r.LoadSeconds() != 40 {
		t.Error(r.LoadSeconds())
	}
}
