package verdict

import (
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
)

// TestSpeculation: what answers tell is held against itself and against the engine's
// counters, and each is called what it is.
func TestSpeculation(t *testing.T) {
	counters := func(accepted float64) []gauge.Reading {
		var out []gauge.Reading
		for i := -1; i <= 21; i++ {
			grown := float64(max(0, i)) / 21
			out = append(out, reading(time.Duration(i)*500*msec, gauge.SourceEngine, 0, map[string]float64{"running": 4, "waiting": 0, "spec_drafts": 40 * grown, "spec_accepted": accepted * grown}))
		}
		return out
	}
	ten := func(g result.Speculation) []result.Call {
		calls := burstOf(10)
		for i := range calls {
			calls[i].Speculation = new(g)
		}
		return calls
	}
	some := ten(result.Speculation{Steps: 4, Drafted: 12, Accepted: 6})
	some[3].Speculation = nil
	odd := ten(result.Speculation{Steps: 4, Drafted: 12, Accepted: 6})
	odd[3].Speculation = &result.Speculation{Steps: 4, Drafted: 2, Accepted: 6}
	for name, test := range map[string]struct {
		calls    []result.Call
		readings []gauge.Reading
		status   result.Status
		text     string // "": there is no such check
	}{
		"nothing told":     {burstOf(10), counters(60), "", ""},
		"answers alone":    {ten(result.Speculation{Steps: 4, Drafted: 12, Accepted: 6}), nil, result.Sound, "10 of 10 answers tell of speculation: 2.50 tokens a step"},
		"both":             {ten(result.Speculation{Steps: 4, Drafted: 12, Accepted: 6}), counters(60), result.Sound, "2.50 tokens a step; the engine's counters, of all its requests, say 2.50"},
		"some":             {some, counters(60), result.Sound, "9 of 10 answers tell"},
		"others' requests": {ten(result.Speculation{Steps: 4, Drafted: 12, Accepted: 6}), counters(20), result.Remark, "the engine guessed for requests that are not in the figures by request, such as failed ones or those of others: 10 of 10 answers tell of speculation: 2.50 tokens a step; the engine's counters, of all its requests, say 1.50"},
		"odd":              {odd, nil, result.Remark, "1 answers contradict themselves in their counts, which are left out: 10 of 10 answers tell"},
		"no steps":         {ten(result.Speculation{Drafted: 12, Accepted: 6}), counters(60), result.Sound, "10 of 10 answers tell of speculation; the engine's counters"},
		"no speculation":   {ten(result.Speculation{Steps: 9}), nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			acc, err := result.NewAccumulator(result.Header{Requests: 10}, result.Options{Readings: test.readings})
			if err != nil {
				t.Fatal(err)
			}
			for i := range test.calls {
				acc.Add(&test.calls[i])
			}
			a, err := acc.Analyze(&result.Client{}, result.Options{Readings: test.readings})
			if err != nil {
				t.Fatal(err)
			}
			var got *result.Check
			for _, c := range Judge(a).Checks {
				if c.Name == "speculation" {
					got = &c
				}
			}
			switch {
			case test.text == "" && got != nil:
				t.Errorf("%+v", got)
			case test.text != "" && (got == nil || got.Status != test.status || !strings.Contains(got.Text, test.text)):
				t.Errorf("%+v, want %s %q", got, test.status, test.text)
			}
		})
	}
}
