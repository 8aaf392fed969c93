package result

import (
	"encoding/json"
	"testing"
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
