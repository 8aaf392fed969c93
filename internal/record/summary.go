package record

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"perflab/internal/workload/blocktrace"
)

// Summary is what a recording holds.
type Summary struct {
	Began time.Time // the first request came; zero: none did
	Span  time.Duration
	Block int

	Requests int
	Failed   int // of them
	Others   int // passed on, and of no API that is recorded
	Several  int // passed on, with several prompts in one request
	Input    int // tokens
	Output   int
	Shared   int // of the prompt tokens: in blocks that an earlier request had
	Sessions int

	Simulated bool // a simulated engine answered

	InputBy  map[string]int // requests by who counted, where it was not the engine
	OutputBy map[string]int
	BlocksBy map[string]int
	Text     int // tokens of prompts, as they were cut into blocks,
	Counted  int // and as the engine counted the same prompts

	Models       map[string]int
	APIs         map[string]int
	Temperatures map[string]int

	sessions, blocks known
}

// mostNames is how many names of models and the like are told apart.
const mostNames = 100

func newSummary(block int) Summary {
	s := Summary{Block: block}
	for _, m := range []*map[string]int{&s.InputBy, &s.OutputBy, &s.BlocksBy, &s.Models, &s.APIs, &s.Temperatures} {
		*m = map[string]int{}
	}
	return s
}

// add adds a line.
func (s *Summary) add(r blocktrace.Row) {
	s.Requests++
	s.Simulated = s.Simulated || r.Simulated
	s.Span = max(s.Span, time.Duration(r.Timestamp*1e6))
	s.Input += r.Input
	s.Output += r.Output
	s.Shared += s.blocks.shared(r)
	if r.Session != "" && s.sessions.isNew(numberOf(r.Session)) {
		s.Sessions++
	}
	if r.Error != "" {
		s.Failed++
		return
	}
	s.describe(r)
}

// describe adds what a line that did not fail says of itself.
func (s *Summary) describe(r blocktrace.Row) {
	if r.BlocksBy != byNothing && r.InputBy == "" {
		s.Text += r.TextTokens
		s.Counted += r.Input
	}
	temperature := ""
	if r.Temperature != nil {
		temperature = strconv.FormatFloat(*r.Temperature, 'g', -1, 64)
	}
	count(s.InputBy, r.InputBy)
	count(s.OutputBy, r.OutputBy)
	count(s.BlocksBy, r.BlocksBy)
	count(s.Models, r.Model)
	count(s.APIs, r.API)
	count(s.Temperatures, temperature)
}

func count(m map[string]int, name string) {
	if _, ok := m[name]; ok || len(m) < mostNames {
		m[name]++
	}
}

// most is the name that came most often.
func most(m map[string]int) string {
	names := slices.Sorted(maps.Keys(m))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(m[a], m[b]) })
}

// known remembers numbers: the latest ones.
type known struct {
	has   map[int64]bool
	order []int64
	at    int
}

// mostKnown is how many numbers are remembered.
const mostKnown = 1 << 20

// isNew says whether a number is not among those that are remembered, and remembers it.
func (k *known) isNew(n int64) bool {
	if k.has[n] {
		return false
	}
	if k.has == nil {
		k.has = map[int64]bool{}
	}
	k.has[n] = true
	if len(k.order) < mostKnown {
		k.order = append(k.order, n)
		return true
	}
	delete(k.has, k.order[k.at])
	k.order[k.at] = n
	k.at = (k.at + 1) % mostKnown
	return true
}

// shared is how many of a prompt's tokens lie in blocks that came before.
func (k *known) shared(r blocktrace.Row) (tokens int) {
	left := r.Input
	for _, id := range r.IDs {
		n := min(left, r.Tokens())
		left -= n
		if !k.isNew(id) {
			tokens += n
		}
	}
	return tokens
}

func numberOf(text string) int64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int64(h.Sum64())
}

// atOnce is how many sessions were under way at most, of the lines of a recording.
func atOnce(rows []blocktrace.Row) int {
	spans := map[string][2]float64{}
	var edges []edge
	for _, r := range rows {
		if r.Session == "" {
			edges = append(edges, edge{r.Timestamp, 1}, edge{r.End(), -1})
			continue
		}
		span, ok := spans[r.Session]
		if !ok {
			span = [2]float64{r.Timestamp, r.End()}
		}
		spans[r.Session] = [2]float64{min(span[0], r.Timestamp), max(span[1], r.End())}
	}
	for _, span := range spans {
		edges = append(edges, edge{span[0], 1}, edge{span[1], -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, top := 0, 0
	for _, e := range edges {
		now += e.by
		top = max(top, now)
	}
	return top
}

// edge is an instant at which a session begins or ends.
type edge struct {
	at float64
	by int
}
