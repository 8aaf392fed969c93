package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"perflab/internal/session"
	"perflab/internal/speculation"
	"perflab/internal/stat"
)

// Tally is what is counted and summed over the calls of a run, one call at a time
// and exactly, so that no call has to be kept for it. Sums of time are whole
// nanoseconds and do not depend on the order of the calls. Where nothing else is
// said it is of the successful calls.
type Tally struct {
	Total       int // calls of any outcome
	Completed   int
	Failures    map[Class]int
	FirstFailed map[Class]*Call // of each class, by index, without its stream
	Overflows   int             // failed ones whose prompt the server had no room for, by its words
	NewFields   map[string]int  // growing fields of deltas that we do not know -> calls of any outcome
	Simulated   bool            // a server said that it is a simulator

	Start, End time.Duration // over all calls: the first due or sent, the last end
	LastSent   time.Duration // over all calls
	Planned    Planned       // over all calls
	Due        Extent
	Sent       Extent
	Ended      Extent

	BadCounts, FirstBadCount int // calls whose count of tokens cannot be, and the lowest index of them
	Repeats, FirstRepeat     int // indices that came again, and the lowest of them

	OutputTokens, InputTokens int
	CachedTokens              int // of the input, by usage
	InputByUsage              int // calls whose prompt the server counted
	Generating                int // calls with output
	Chunks, Merged            int
	Uneven                    int // calls with a read that brought other than one token
	Counted                   TokenCounts
	Asked                     AskedLengths
	Speculated                speculation.Sums
	Sessions                  session.Tally

	Opened        int           // calls for which a connection was opened
	Connected     int           // calls that tell of their connection
	Reads, Coarse int           // reads, and those of them without the kernel's stamp
	Between       time.Duration // from first to last token
	InCalls       time.Duration // from asking for a connection to the end
	LagFromDue    time.Duration // sent later than possible, had the run no concurrency limit; see Call.Lag
	LagFromReady  time.Duration // the same with one
	Waited        int           // calls that waited for a place among those in flight
	Waiting       time.Duration // of them
	InPlaces      time.Duration // for which calls held a place, from being let through to the end

	Late   int                     // reads that were late
	LateBy time.Duration           // the most that one of them was
	Doubts map[string]*stat.Doubts // what they leave open of each family

	Disorder   Fault // stamps that cannot be
	Identified int   // calls with a TPOT
	Identity   Fault // TTFT + TPOT*(n-k) is not E2E

	Seen stat.IndexSet
}

// Extent is the first and the last of some instants.
type Extent struct{ First, Last time.Duration }

func (x *Extent) add(at time.Duration, first bool) {
	if first {
		x.First, x.Last = at, at
	}
	x.First, x.Last = min(x.First, at), max(x.Last, at)
}

// Planned is what was to be sent and to come back.
type Planned struct {
	Input, Output int           // tokens
	Span          time.Duration // until the last was due
}

// Fault is what is wrong with the call of the lowest index of those that have it wrong.
type Fault struct {
	Index int
	Text  string // "" for none
}

func (f *Fault) add(index int, text string) {
	if text != "" && (f.Text == "" || index < f.Index) {
		f.Index, f.Text = index, text
	}
}

// TokenCounts are the output tokens of a run by who counted them.
type TokenCounts struct {
	WithUsage, Usage, Reasoning int // calls with usage, its tokens
	Over, Under                 int // of those calls, by how much the stream exceeds usage and falls short of it, call by call
	Streamed                    int // counted in the stream, over all calls
	WithText, Text              int // calls whose text was counted, its tokens
	TextOutput                  int // of the calls with text, n by usage or stream
	OneRead                     int // calls of several tokens that came in one read
	ByText, ByChunks            int // calls whose n is of the text, and of the stream
}

func (t *TokenCounts) add(c *Call) {
	n, from := c.Output()
	if _, later := c.FirstRead(); n > 1 && !later {
		t.OneRead++
	}
	counted := c.Counted()
	t.Streamed += counted
	if c.Recount > 0 {
		t.WithText++
		t.Text += c.Recount
		if from == FromUsage {
			t.TextOutput += n
		} else {
			t.TextOutput += counted
		}
	}
	switch from {
	case FromText:
		t.ByText++
	case FromChunks:
		t.ByChunks++
	case FromUsage:
		t.WithUsage++
		t.Usage += n
		t.Reasoning += c.Usage.Reasoning
		t.Over += max(0, counted-n)
		t.Under += max(0, n-counted)
	}
}

// AskedLengths compare the lengths that came with those asked for. Differences are
// added up call by call, so that those in both directions do not cancel.
type AskedLengths struct {
	Wanted, Generated int // output tokens of the calls that asked for a number of them
	Short, Over       int // calls with fewer, and with more
	Missing           int // output tokens of the short ones
	Stopped           int // short ones that the server ended with "stop"
	ByText, ByChunks  int // short ones whose tokens were counted in their text, and in the stream

	Planned, Counted int // prompt tokens, by the workload and by usage, of the calls that have both
	Fewer, More      int // by how much usage is below the workload's, and above by more than a template adds
}

// TemplateTokens is what a chat template may add to a prompt: from 5 to 80 in the
// templates of Qwen, Llama, DeepSeek and gpt-oss.
const TemplateTokens = 100

func (l *AskedLengths) add(c *Call) {
	if c.Want > 0 {
		l.addOutput(c)
	}
	if p, from := c.Input(); from == FromUsage && c.WantIn > 0 {
		l.Planned, l.Counted = l.Planned+c.WantIn, l.Counted+p
		l.Fewer += max(0, c.WantIn-p)
		l.More += max(0, p-c.WantIn-TemplateTokens)
	}
}

func (l *AskedLengths) addOutput(c *Call) {
	n, from := c.Output()
	l.Wanted, l.Generated = l.Wanted+c.Want, l.Generated+n
	if n > c.Want {
		l.Over++
	}
	if n >= c.Want {
		return
	}
	l.Short, l.Missing = l.Short+1, l.Missing+c.Want-n
	if c.Finish == "stop" {
		l.Stopped++
	}
	switch from {
	case FromText:
		l.ByText++
	case FromChunks:
		l.ByChunks++
	}
}

// add counts a call and returns it with counts of tokens that can be.
func (t *Tally) add(c *Call) *Call {
	first := c.Due
	if c.OK() {
		first = min(first, c.Sent)
	}
	if t.Total == 0 {
		t.Start, t.End, t.LastSent = first, c.End, c.Sent
	}
	t.Total++
	t.Start, t.End, t.LastSent = min(t.Start, first), max(t.End, c.End), max(t.LastSent, c.Sent)
	t.Planned.Input, t.Planned.Output = t.Planned.Input+c.WantIn, t.Planned.Output+c.Want
	t.Planned.Span = max(t.Planned.Span, c.Due)
	t.Simulated = t.Simulated || c.Sim
	if c.Field != "" {
		if t.NewFields == nil {
			t.NewFields = map[string]int{}
		}
		t.NewFields[c.Field]++
	}
	if !c.OK() {
		t.addFailed(c)
		return c
	}
	fixed, ok := c.Plausible()
	if !ok {
		if t.BadCounts == 0 || c.Index < t.FirstBadCount {
			t.FirstBadCount = c.Index
		}
		t.BadCounts++
	}
	t.addSucceeded(fixed)
	return fixed
}

// overflow is how servers say that a prompt is longer than their context.
var overflow = regexp.MustCompile(`(?i)context[ _]length|maximum context|prompt is too long`)

func (t *Tally) addFailed(c *Call) {
	if t.Failures == nil {
		t.Failures, t.FirstFailed = map[Class]int{}, map[Class]*Call{}
	}
	t.Failures[c.Class]++
	if overflow.MatchString(c.Error) {
		t.Overflows++
	}
	if first := t.FirstFailed[c.Class]; first == nil || c.Index < first.Index {
		bare := *c
		bare.Chunks, bare.Empty, bare.Text = nil, nil, ""
		t.FirstFailed[c.Class] = &bare
	}
}

func (t *Tally) addSucceeded(c *Call) {
	one := t.Completed == 0
	t.Due.add(c.Due, one)
	t.Sent.add(c.Sent, one)
	t.Ended.add(c.End, one)
	t.Completed++
	if t.Seen.Add(c.Index) {
		if t.Repeats == 0 || c.Index < t.FirstRepeat {
			t.FirstRepeat = c.Index
		}
		t.Repeats++
	}
	t.addTokens(c)
	t.addTimes(c)
	t.addLate(c)
	t.Disorder.add(c.Index, c.disorder())
	t.identify(c)
}

func (t *Tally) addTokens(c *Call) {
	n, _ := c.Output()
	p, from := c.Input()
	t.OutputTokens, t.InputTokens = t.OutputTokens+n, t.InputTokens+p
	if from == FromUsage {
		t.InputByUsage++
	}
	if c.Usage != nil {
		t.CachedTokens += c.Usage.Cached
	}
	if n > 0 || len(c.Chunks) > 0 {
		t.Generating++
	}
	t.Chunks += len(c.Chunks)
	t.Merged += mergedChunks(c)
	if uneven(c) {
		t.Uneven++
	}
	t.Counted.add(c)
	t.Asked.add(c)
	t.Speculated.Add(c.Speculation)
	t.addSession(c)
}

func (t *Tally) addTimes(c *Call) {
	if c.New {
		t.Opened++
	}
	if c.connected() {
		t.Connected++
	}
	t.Reads, t.Coarse = t.Reads+c.Reads, t.Coarse+c.Coarse
	if n := len(c.Chunks); n > 0 {
		t.Between += c.Chunks[n-1].At - c.Chunks[0].At
	}
	t.InCalls += c.Dial + c.End - c.Sent
	t.LagFromDue += max(0, c.Lag(0))
	t.LagFromReady += max(0, c.Lag(1))
	if w := c.waited(); w > 0 {
		t.Waited, t.Waiting = t.Waited+1, t.Waiting+w
	}
	t.InPlaces += c.End - c.Ready
}

// identify checks TTFT + TPOT*(n-k) = E2E of a call that has a TPOT, to 1 us or
// 1e-9 of E2E.
func (t *Tally) identify(c *Call) {
	tpot, ok := c.TPOT()
	if !ok {
		return
	}
	t.Identified++
	ttft, _ := c.TTFT()
	e2e, _ := c.E2E()
	n, _ := c.Output()
	k, _ := c.FirstRead()
	sum := float64(ttft) + tpot*float64(n-k)
	if !(math.Abs(sum-float64(e2e)) <= max(1e3, 1e-9*float64(e2e))) || tpot < 0 {
		t.Identity.add(c.Index, fmt.Sprintf("call %d: TTFT + TPOT*(n-%d) is %.6f ms but E2E is %.6f ms", c.Index, k, sum/1e6, ms(e2e)))
	}
}

// disorder says which stamp of the call cannot be, "" for none: due <= ready <=
// connecting <= sent <= first byte <= headers <= chunks, each not before the last,
// <= end, none negative. Dial, First, Headers and Answer are zero when unknown.
func (c *Call) disorder() string {
	prev, prevName, bad := time.Duration(0), "the start", ""
	step := func(at time.Duration, name string) {
		if bad == "" && at < prev {
			bad = fmt.Sprintf("call %d: %s at %v is before %s at %v", c.Index, name, at, prevName, prev)
		}
		prev, prevName = at, name
	}
	step(c.Due, "due")
	step(c.Ready, "ready")
	if c.Dial != 0 {
		step(c.Sent-c.Dial, "asking for a connection")
	}
	step(c.Sent, "sent")
	if c.First != 0 {
		step(c.First, "the first byte")
	}
	if c.Headers != 0 {
		step(c.Headers, "headers")
	}
	for _, k := range c.Chunks {
		step(k.At, "a chunk")
	}
	step(c.End, "end")
	first, _ := c.FirstToken()
	if last, _ := c.LastToken(); bad == "" && c.Answer != 0 && (c.Answer < first || c.Answer > last) {
		bad = fmt.Sprintf("call %d: first answer token at %v is not between first and last token", c.Index, c.Answer)
	}
	return bad
}

// FailureText says in a sentence how many calls failed and why, with one error of
// the most frequent class; "" where none did.
func (t *Tally) FailureText() string {
	if len(t.Failures) == 0 {
		return ""
	}
	classes := slices.SortedFunc(maps.Keys(t.Failures), func(a, b Class) int {
		return cmp.Or(cmp.Compare(t.Failures[b], t.Failures[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(classes))
	for i, class := range classes {
		parts[i] = fmt.Sprintf("%s %d", class, t.Failures[class])
	}
	text := fmt.Sprintf("%d of %d calls failed (%s) and are in no latency or throughput figure",
		t.Total-t.Completed, t.Total, strings.Join(parts, ", "))
	if first := t.FirstFailed[classes[0]]; first.Error != "" {
		text += fmt.Sprintf("; call %d: %s", first.Index, first.Error)
	}
	return text
}

// Pooling reports whether calls succeeded and none of them generated a token, as
// with an API for embeddings: then there are no figures of output.
func (t *Tally) Pooling() bool { return t.Completed > 0 && t.Generating == 0 }

// Burst reports whether all requests were due at once.
func (t *Tally) Burst() bool { return t.Due.First == t.Due.Last }
