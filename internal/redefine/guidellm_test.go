package redefine

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/test/calltest"
)

// TestByGuideLLM: a report of guidellm of some calls and the figures of the same calls by
// its definitions agree, in every figure that is not ours.
func TestByGuideLLM(t *testing.T) {
	h, calls := result.Header{Model: "m", Started: time.Unix(1e9, 0)}, calltest.Steady(60, 20*time.Millisecond)
	data, err := interop.GuideLLM(h, calls)
	if err != nil {
		t.Fatal(err)
	}
	// of another client, whose requests are not at hand
	data = bytes.ReplaceAll(data, []byte(`"client"`), []byte(`"x"`))
	f := interop.Read("g.json", data)
	if len(f.Runs) != 1 || f.Runs[0].Header.Imported.Client != "guidellm" {
		t.Fatalf("runs: %+v", f.Runs)
	}
	theirs := f.Runs[0]
	got, err := By(theirs.Defs, h, nil, calls)
	if err != nil {
		t.Fatal(err)
	}
	held := map[result.Definition]int{}
	for _, x := range theirs.Figures {
		d := theirs.Definition(x.Name)
		if d == result.Ours {
			continue
		}
		held[d]++
		if v, ok := got.Summary.Figures[x.Name]; !ok || math.Abs(v-x.Value) > 1e-9*math.Abs(x.Value) || got.Summary.Definition(x.Name) != d {
			t.Errorf("%s (%s) is %v, %v; want %v", x.Name, d, v, ok, x.Value)
		}
	}
	if len(held) < 6 {
		t.Errorf("held figures of these definitions alone: %v", held)
	}
	for name, why := range got.Missing {
		if d := theirs.Defs[name]; theirs.Figures != nil && name != "steady_tpot" && name != "steady_ttft" && name != "ttft_due" {
			t.Errorf("%s by %s is missing: %s", name, d, why)
		}
	}
}

// TestByOldGuideLLM: of versions that count a message with the role on some servers, the TTFT is given where
// that message came with the first token, and no figure is where it came before.
func TestByOldGuideLLM(t *testing.T) {
	defs := map[string]result.Definition{"ttft": result.FirstIteration, "tpot": result.E2EPerTokenWeighted}
	calls := calltest.Steady(20, 20*time.Millisecond)
	got, err := By(defs, result.Header{}, nil, calls)
	if _, ok := got.Summary.Figures["mean_ttft_ms"]; err != nil || !ok || got.Summary.Definition("mean_ttft_ms") != result.FirstIteration {
		t.Errorf("%v, %v, %v", got.Summary.Definitions, got.Missing, err)
	}
	calls[3].Empty = []result.Stamp{{At: calls[3].Sent + time.Millisecond}}
	got, err = By(defs, result.Header{}, nil, calls)
	if _, ok := got.Summary.Figures["mean_ttft_ms"]; err != nil || ok || !strings.Contains(got.Missing["ttft"], "message of the role") {
		t.Errorf("%v, %v, %v", got.Summary.Figures, got.Missing, err)
	}
	if _, ok := got.Summary.Figures["p99_tpot_ms"]; !ok {
		t.Errorf("the TPOT is missing: %v", got.Missing)
	}
}
