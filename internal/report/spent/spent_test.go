package spent

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/trace"
)

func at(n float64) time.Duration { return time.Duration(n * 1e6) }

// call is one of two tokens, due at 0.
func call(index int, sent, first, last float64) result.Call {
	return result.Call{Index: index, Sent: at(sent), End: at(last), TraceID: fmt.Sprintf("%032d", index), Chunks: []result.Chunk{{At: at(first), Tokens: 1}, {At: at(last), Tokens: 1}}}
}

func took(n float64) trace.Took { return trace.Took{Duration: at(n), Known: true} }

// made is the document of calls and of what the engine says of them, as text and as a page.
func made(t *testing.T, every int, calls []result.Call, engine map[string]trace.Times) (text, page string) {
	t.Helper()
	d := doc.New("Run", "", "a test")
	d.Body.Section("plots", "Plots").Para("plots")
	d.Body.Section("ran", "What Ran").Para("ran")
	Add(&d, result.Header{}, calls, every, engine, "spans.jsonl")
	var b, p bytes.Buffer
	if err := doc.Text(&b, d); err != nil {
		t.Fatal(err)
	}
	if err := doc.HTML(&p, d); err != nil {
		t.Fatal(err)
	}
	return b.String(), p.String()
}

func TestSlowest(t *testing.T) {
	calls := []result.Call{call(1, 2, 60, 100), call(2, 10, 200, 300), call(3, 1, 50, 90), call(4, 0, 5, 9), call(5, 0, 5, 9)}
	calls[4].Class = result.EarlyClose
	engine := map[string]trace.Times{}
	for i, c := range calls[:3] {
		engine[c.TraceID] = trace.Times{Queue: took(float64(10 * i)), Prefill: took(30), Decode: took(39.96), Spans: 1, Service: "vllm"}
	}
	engine[calls[3].TraceID] = trace.Times{Queue: took(400), Spans: 1, Service: "vllm"} // of another run
	engine[calls[2].TraceID] = trace.Times{Queue: took(20), Spans: 1, Service: "sim", Simulated: true}
	text, page := made(t, 1, calls, engine)
	for _, want := range []string{
		`4 of 5 calls have spans of sim \(SIMULATED\), vllm in spans\.jsonl\.`,
		`Of 1 of them the engine claims more time`,
		`(?m)^2 +300\.0 +10\.0 +0\.0 +150\.0 +10\.0 +30\.0 +100\.0 +40\.0 +0{31}2\n1 +100\.0 +2\.0 +0\.0 +28\.0 +0\.0 +30\.0 +40\.0 +40\.0 +0{31}1\n3 +90\.0 +1\.0 +0\.0 +29\.0 +20\.0 +- +40\.0 +- +0{31}3$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	plots, spent, ran := strings.Index(page, `id="plots"`), strings.Index(page, `id="spent"`), strings.Index(page, `id="ran"`)
	if !(plots < spent && spent < ran) {
		t.Errorf("plots at %d, the section at %d, what ran at %d", plots, spent, ran)
	}
	for _, want := range []string{"SIMULATED", ">#2<", "Engine queue 10", "Between 150", "The 3 slowest of 3 calls with spans"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, ">#4<") || strings.Contains(page, ">#5<") {
		t.Error("the page shows a call that failed, or whose spans are another's")
	}
}

// Bars add up to what a call took, whatever is told.
func TestBars(t *testing.T) {
	calls := []result.Call{call(1, 10, 60, 100)}
	_, page := made(t, 1, calls, map[string]trace.Times{calls[0].TraceID: {Queue: took(20), Prefill: took(20), Decode: took(39), Spans: 1}})
	svg := page[strings.Index(page, `<svg`):]
	svg = svg[:strings.Index(svg, "</svg>")]
	var x, w, end float64
	for _, m := range regexp.MustCompile(`<rect class="s\d" x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="13"`).FindAllStringSubmatch(svg, -1) {
		fmt.Sscan(m[1], &x)
		fmt.Sscan(m[2], &w)
		if end > 0 && (x-end > 0.2 || end-x > 0.2) {
			t.Errorf("a bar ends at %g, the next begins at %g", end, x)
		}
		end = x + w
	}
	if end == 0 {
		t.Errorf("no bar in %s", svg)
	}
}

func TestNothing(t *testing.T) {
	bare := call(1, 0, 5, 9)
	bare.TraceID = ""
	for _, c := range []struct {
		calls []result.Call
		every int
		want  string
	}{
		{[]result.Call{bare}, 1, "carried no trace context"},
		{[]result.Call{call(1, 0, 5, 9)}, 1, "No span of spans.jsonl tells a time"},
	} {
		text, page := made(t, c.every, c.calls, nil)
		if !strings.Contains(text, c.want) || strings.Contains(text, "Engine queue") || strings.Contains(page, `class="pl"`) {
			t.Errorf("no %q alone in\n%s", c.want, text)
		}
	}
	calls := []result.Call{call(1, 0, 5, 9)}
	if text, _ := made(t, 100, calls, map[string]trace.Times{calls[0].TraceID: {Spans: 1}}); !strings.Contains(text, "1 of 1 calls (one in 100 of the run) have spans of an engine without a name") {
		t.Error(text)
	}
}
