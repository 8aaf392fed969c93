package result

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// randomSpeculation is of steps of three guesses, drawn by the seed.
func randomSpeculation(seed int) *Speculation {
	g := &Speculation{Steps: seed % 40, ByStep: make([]int32, 4)}
	for i := range g.Steps {
		j := (seed + i*i) % 4
		g.ByStep[j]++
		g.Accepted += j
	}
	g.Drafted = 3 * g.Steps
	return g
}

// told are calls of a run with what their servers tell.
func told(t *testing.T, all ...*Speculation) (*Analysis, []Call) {
	t.Helper()
	var calls []Call
	for i, g := range all {
		c := stream(i, 50*msec, 60*msec, 70*msec)
		c.Speculation = g
		calls = append(calls, c)
	}
	a, err := Analyze(Header{}, nil, Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	return a, calls
}

// speculationFigures are those by what answers tell.
func speculationFigures(s Summary) map[string]float64 {
	out := map[string]float64{}
	for _, m := range speculationScalars() {
		if v, ok := s.Figures[m.Name]; ok {
			out[m.Name] = math.Round(1e6*v) / 1e6
		}
	}
	return out
}

func TestSpeculationFigures(t *testing.T) {
	vllm := []*Speculation{{Steps: 10, Drafted: 30, Accepted: 14, ByStep: []int32{3, 3, 1, 3}}, {Steps: 4, Drafted: 12, Accepted: 1, ByStep: []int32{3, 1, 0, 0}}}
	two := map[string]float64{"speculating_requests": 2, "request_acceptance_rate": 0.357143, "request_acceptance_length": 2.071429,
		"request_acceptance_at_1": 0.571429, "request_acceptance_at_2": 0.285714, "request_acceptance_at_3": 0.214286}
	with := func(more ...any) map[string]float64 {
		out := map[string]float64{}
		maps.Copy(out, two)
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1].(float64)
		}
		return out
	}
	for name, tt := range map[string]struct {
		told []*Speculation
		want map[string]float64
		odd  int
	}{
		"two":               {vllm, two, 0},
		"one does not tell": {append(slices.Clone(vllm), nil), two, 0},
		"one without steps": {append(slices.Clone(vllm), &Speculation{ByStep: []int32{0, 0, 0, 0}}), with("speculating_requests", 3.0), 0},
		"none tells":        {[]*Speculation{nil, nil}, map[string]float64{}, 0},
		"guesses alone":     {[]*Speculation{{Drafted: 30, Accepted: 6}}, map[string]float64{"speculating_requests": 1, "request_acceptance_rate": 0.2}, 0},
		"steps alone":       {[]*Speculation{{Steps: 10, Accepted: 5}, {Steps: 10}}, map[string]float64{"speculating_requests": 2, "request_acceptance_length": 1.25}, 0},
		"steps of no guess": {[]*Speculation{{Steps: 31}, {Steps: 31}}, map[string]float64{}, 0},
		"no guess was made": {[]*Speculation{{ByStep: []int32{0, 0}}}, map[string]float64{"speculating_requests": 1}, 0},
		"none is accepted":  {[]*Speculation{{Steps: 5, Drafted: 10, ByStep: []int32{5, 0, 0}}}, map[string]float64{"speculating_requests": 1, "request_acceptance_rate": 0, "request_acceptance_length": 1, "request_acceptance_at_1": 0, "request_acceptance_at_2": 0}, 0},
		"longer lists": {append(slices.Clone(vllm), &Speculation{Steps: 14, Drafted: 70, Accepted: 70, ByStep: []int32{0, 0, 0, 0, 0, 14}}), map[string]float64{"speculating_requests": 3, "request_acceptance_rate": 0.758929, "request_acceptance_length": 4.035714,
			"request_acceptance_at_1": 0.785714, "request_acceptance_at_2": 0.642857, "request_acceptance_at_3": 0.607143, "request_acceptance_at_4": 0.5, "request_acceptance_at_5": 0.5}, 0},
		"more accepted than guessed": {append(slices.Clone(vllm), &Speculation{Steps: 2, Drafted: 3, Accepted: 4}), with("speculating_requests", 3.0), 1},
		"negative":                   {append(slices.Clone(vllm), &Speculation{Steps: -2, Accepted: 4}), with("speculating_requests", 3.0), 1},
		"counts of other steps":      {append(slices.Clone(vllm), &Speculation{Steps: 14, Drafted: 42, Accepted: 15, ByStep: []int32{1, 2, 3}}), with("speculating_requests", 3.0), 1},
		"no counts":                  {append(slices.Clone(vllm), &Speculation{Steps: 14, Drafted: 42, Accepted: 15, ByStep: []int32{-1, 15}}), with("speculating_requests", 3.0), 1},
	} {
		a, _ := told(t, tt.told...)
		if d := cmp.Diff(tt.want, speculationFigures(a.Summary())); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
		if a.Speculated.Odd != tt.odd {
			t.Errorf("%s: %d are odd", name, a.Speculated.Odd)
		}
	}
}

// A failed call tells nothing, and no more positions have figures than rows.
func TestSpeculationOfWhom(t *testing.T) {
	failed := stream(0, 50*msec, 60*msec)
	failed.Class, failed.Speculation = StreamError, randomSpeculation(9)
	s, err := Summarize(Header{}, nil, Options{}, slices.Values([]Call{failed}))
	if err != nil {
		t.Fatal(err)
	}
	if got := speculationFigures(s); len(got) > 0 {
		t.Errorf("a failed call gives %v", got)
	}
	long := &Speculation{Steps: 3, Drafted: 300, Accepted: 60, ByStep: make([]int32, 101)}
	long.ByStep[20] = 3
	a, _ := told(t, long)
	if got := Positions(new(a.Summary())); len(got) != mostPositions {
		t.Errorf("%d positions", len(got))
	}
}

func TestPositions(t *testing.T) {
	a, _ := told(t, &Speculation{Steps: 8, Drafted: 32, Accepted: 6, ByStep: []int32{4, 2, 2, 0, 0}})
	want := []Position{{1, 0.5, 0.5, true}, {2, 0.25, 0.5, true}, {3, 0, 0, true}, {4, 0, 0, false}}
	if d := cmp.Diff(want, Positions(new(a.Summary()))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestGroupSpeculation(t *testing.T) {
	var all []*Speculation
	for i := range 16 { // a step of the i-th yields 1 + i/8 tokens; every other call is out of order
		all = append(all, &Speculation{Steps: 8, Drafted: 24, Accepted: (i * 5) % 16})
	}
	all = append(all, nil, &Speculation{Steps: 8, Drafted: 3, Accepted: 9}, &Speculation{})
	_, calls := told(t, all...)
	for i := range calls {
		if calls[i].Speculation != nil && calls[i].Speculation.Accepted < 4 {
			calls[i].Chunks[1].At += 30 * time.Millisecond
		}
	}
	groups, byRate := GroupSpeculation(calls)
	if byRate || len(groups) != 4 {
		t.Fatalf("%d groups, by rate %v", len(groups), byRate)
	}
	for i, g := range groups {
		want := SpeculationGroup{Requests: 4, Low: 1 + 4*float64(i)/8, High: 1 + (4*float64(i)+3)/8, Length: 1 + (4*float64(i)+1.5)/8, Rate: (4*float64(i) + 1.5) / 24, Rated: true, TPOT: 10, Timed: 4}
		if i == 0 {
			want.TPOT = 40
		}
		if d := cmp.Diff(want, g, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); d != "" {
			t.Errorf("group %d: -want +got\n%s", i, d)
		}
	}
	if groups, _ := GroupSpeculation(calls[:15]); groups != nil {
		t.Errorf("15 requests are in groups: %v", groups)
	}
	for i := range calls {
		if calls[i].Speculation != nil {
			calls[i].Speculation.Steps = 0
		}
	}
	if groups, byRate := GroupSpeculation(calls); !byRate || len(groups) != 4 || groups[3].High != 15./24 || groups[0].Length != 0 {
		t.Errorf("without steps: %v by rate %v", groups, byRate)
	}
}

// The counters of the engine and what answers tell have figures of their own.
func TestSpeculationIsNotTheCounters(t *testing.T) {
	byName := map[string]Metric{}
	for _, m := range Metrics() {
		byName[m.Name] = m
	}
	if byName["acceptance_length"].Section == byName["request_acceptance_length"].Section {
		t.Error("both are in one section")
	}
	for i := range mostPositions {
		m := byName[fmt.Sprint(positionPrefix, i+1)]
		if m.Section != sectionSpeculation || len(m.Needs()) > 0 {
			t.Errorf("position %d: %+v needs %v", i+1, m, m.Needs())
		}
	}
}
