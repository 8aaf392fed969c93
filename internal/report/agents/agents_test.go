package agents

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
)

// TestCells: what is not known is said to be missing, and no zero stands for it.
func TestCells(t *testing.T) {
	ended := &result.Client{Wall: 10, CPU: 5, Procs: 1}
	for name, tt := range map[string]struct {
		agent   result.Agent
		figures []result.AgentFigures
		planned int
		want    []string
	}{
		"all is known": {result.Agent{Name: "a", Of: 1, Requests: 1200, Limit: 1000, Client: ended, Offset: &result.ClockOffset{Offset: -1500 * time.Microsecond, Bound: 20 * time.Microsecond}},
			[]result.AgentFigures{{AgentTally: result.AgentTally{Calls: 1200, Chunks: 1000, Merged: 12}, LagP99: new(0.25)}}, 9,
			[]string{"a", "1 of 1", "1,200", "1,000", "0.250", "50 % of 1", "1.2 %", "-1.500 ± 0.020", "all sent"}},
		"nothing is": {result.Agent{Of: 1}, nil, 9, []string{"number 1", "1 of 1", "0", "no limit", "n/a", "n/a", "n/a", "n/a", "not heard of at the end"}},
		"stopped": {result.Agent{Name: "a", Of: 1, Client: &result.Client{Partial: true, StopNote: "interrupted"}}, nil, 0,
			[]string{"a", "1 of 1", "0", "no limit", "n/a", "n/a", "n/a", "n/a", "stopped: interrupted"}},
		"time decided": {result.Agent{Name: "a", Of: 1, Client: ended}, []result.AgentFigures{{AgentTally: result.AgentTally{Calls: 3, Failed: 3}}}, 0,
			[]string{"a", "1 of 1", "3, 3 failed", "no limit", "n/a", "50 % of 1", "n/a", "n/a", "sent until the end"}},
		"lost": {result.Agent{Name: "a", Of: 1, Requests: 5, Lost: "no word"}, []result.AgentFigures{{AgentTally: result.AgentTally{Calls: 3}}}, 5,
			[]string{"a", "1 of 1", "3 of 5", "no limit", "n/a", "n/a", "n/a", "n/a", "lost: no word"}},
	} {
		h := result.Header{Requests: tt.planned, Fleet: &result.Fleet{Agents: []result.Agent{tt.agent}}}
		var got []string
		for _, c := range Table(h, &result.Summary{Agents: tt.figures}).Rows[0].Cells {
			var text strings.Builder
			for _, s := range c.Text {
				text.WriteString(s.Text)
			}
			got = append(got, text.String())
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
	if rows := Table(result.Header{}, &result.Summary{}).Rows; rows != nil || Sender(nil) != "" {
		t.Errorf("a run that no fleet sent has %d agents", len(rows))
	}
}
