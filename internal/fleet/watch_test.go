package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/fleet/order"
)

func TestPace(t *testing.T) {
	at := func(ms int, tokens int64) report {
		return report{time.Duration(ms) * time.Millisecond, order.Progress{Sent: tokens / 10, InFlight: 2, Tokens: tokens}}
	}
	rate := func(x float64) *float64 { return &x }
	for name, tt := range map[string]struct {
		epoch uint64 // of the facts
		told  map[uint64][]report
		now   int // ms
		want  *Pace
	}{
		"idle":            {0, map[uint64][]report{5: {at(0, 0), at(1000, 100)}}, 1000, nil},
		"nothing is told": {5, nil, 1000, nil},
		"another load":    {6, map[uint64][]report{5: {at(0, 0), at(1000, 100)}}, 1000, nil},
		"too short":       {5, map[uint64][]report{5: {at(0, 0), at(999, 100)}}, 1000, &Pace{Progress: at(0, 100).Progress}},
		"even":            {5, map[uint64][]report{5: {at(0, 0), at(500, 50), at(1000, 100)}}, 1000, &Pace{at(0, 100).Progress, rate(100)}},
		"of the last":     {5, map[uint64][]report{5: {at(0, 0), at(10_000, 50), at(12_000, 250)}}, 12_000, &Pace{at(0, 250).Progress, rate(100)}},
		"stands still":    {5, map[uint64][]report{5: {at(0, 100), at(2000, 100)}}, 2000, &Pace{at(0, 100).Progress, rate(0)}},
		"says no more":    {5, map[uint64][]report{5: {at(0, 0), at(2000, 100)}}, 4001, &Pace{Progress: at(0, 100).Progress}},
	} {
		s := &seen{Agent: Agent{Facts: order.Facts{Epoch: tt.epoch}}}
		for epoch, all := range tt.told {
			for _, r := range all {
				s.tells(epoch, r)
			}
		}
		if d := cmp.Diff(tt.want, s.pace(time.Duration(tt.now)*time.Millisecond)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
	s := &seen{}
	for n := range 1000 {
		s.tells(uint64(1+n/500), at(250*n, 0))
	}
	if len(s.report) > 13 || s.epoch != 2 {
		t.Errorf("%d reports of load %d are kept", len(s.report), s.epoch)
	}
}

func TestUnderway(t *testing.T) {
	rate := 40.0
	agent := func(id string, epoch uint64, w *order.Work, p *Pace) Present {
		return Present{Agent: Agent{ID: id, Facts: order.Facts{Name: "n" + id, Epoch: epoch, Doing: "sends: shard", Work: w}}, Pace: p}
	}
	sends := func(tokens int64, rate *float64) *Pace {
		return &Pace{order.Progress{Sent: 3, InFlight: 1, Tokens: tokens}, rate}
	}
	work := func(shard int) *order.Work {
		return &order.Work{State: "sends", Shard: shard, Of: 3, Who: "ada", Load: "random", Model: "m", Simulated: shard == 1}
	}
	both := 80.0
	for name, tt := range map[string]struct {
		all  []Present
		want []Underway
	}{
		"idle": {[]Present{agent("a", 0, nil, nil)}, []Underway{}},
		"two of three shards": {
			[]Present{agent("a", 7, work(1), sends(10, &rate)), agent("b", 7, work(0), sends(20, &rate)), agent("c", 0, nil, nil)},
			[]Underway{{Epoch: 7, Who: "ada", Load: "random", Model: "m", Shards: 3, Simulated: true, Parts: []Part{
				{Agent: "b", Name: "nb", Shard: 0, State: "sends", Pace: sends(20, &rate)}, {Agent: "a", Name: "na", Shard: 1, State: "sends", Pace: sends(10, &rate)},
			}, Pace: &Pace{order.Progress{Sent: 6, InFlight: 2, Tokens: 30}, &both}}},
		},
		"one pace is not known": {
			[]Present{agent("a", 7, work(0), sends(10, &rate)), agent("b", 7, work(1), sends(20, nil)), agent("c", 7, work(2), nil)},
			[]Underway{{Epoch: 7, Who: "ada", Load: "random", Model: "m", Shards: 3, Simulated: true, Parts: []Part{
				{Agent: "a", Name: "na", Shard: 0, State: "sends", Pace: sends(10, &rate)}, {Agent: "b", Name: "nb", Shard: 1, State: "sends", Pace: sends(20, nil)}, {Agent: "c", Name: "nc", Shard: 2, State: "sends"},
			}, Pace: &Pace{Progress: order.Progress{Sent: 6, InFlight: 2, Tokens: 30}}}},
		},
		"an agent that says less, and an older load": {
			[]Present{agent("a", 9, nil, nil), agent("b", 8, nil, nil)},
			[]Underway{{Epoch: 8, Shards: 1, Parts: []Part{{Agent: "b", Name: "nb", State: "sends: shard"}}}, {Epoch: 9, Shards: 1, Parts: []Part{{Agent: "a", Name: "na", State: "sends: shard"}}}},
		},
	} {
		if d := cmp.Diff(tt.want, underway(tt.all)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

func TestInvitationIsChecked(t *testing.T) {
	for n, want := range map[NewInvitation]bool{
		{"", 60}: true, {"lab.example.org", 60}: true, {"10.0.0.7", 60}: true, {"fd00::7", 60}: true, {"lab_7", mostInvitation}: true,
		{"lab.example.org:7422", 60}: false, {"a'; reboot; '", 60}: false, {"https://lab", 60}: false, {"-x", 60}: false, {"x y", 60}: false, {"", 0.5}: false, {"", -1}: false, {"", mostInvitation + 1}: false,
	} {
		if err := n.validate(); (err == nil) != want {
			t.Errorf("%+v: %v", n, err)
		}
	}
}

// TestChooseFree: an agent that a study holds sends no other load, also between the study's own.
func TestChooseFree(t *testing.T) {
	l := &Leader{}
	all := []Agent{{ID: "1", Facts: order.Facts{Name: "a"}}, {ID: "2", Facts: order.Facts{Name: "b", Held: &order.Held{Who: "ada on lab", Study: "nodes"}}}}
	got, err := l.Choose(all, Choice{})
	if err != nil || len(got) != 1 || got[0].ID != "1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []Choice{{Count: 2}, {Names: []string{"b"}}} {
		if _, err := l.Choose(all, c); err == nil || !strings.Contains(err.Error(), "b is held by ada on lab for study nodes") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	st := Standing{Agents: []Present{{Agent: all[0]}, {Agent: all[1]}}}
	if st.sort(); st.Idle.Agents != 1 {
		t.Errorf("%d are idle", st.Idle.Agents)
	}
}
