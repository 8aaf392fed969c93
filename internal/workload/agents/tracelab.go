package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// A row of TraceLab's corpus is one request of a session. It has the lengths of
// prompt and answer, how much of the prompt the provider's cache held, and when
// what the request was made of and what came of it was there: no ids of blocks, no
// time at which a request was sent, and no word of who started whom. These follow
// from the rest: see blocksOf, timed and join.
type tracelabRow struct {
	Session string  `json:"session_id"`
	Key     string  `json:"trace_key"` // of the request; a row again has the same
	User    string  `json:"user"`
	Project string  `json:"project"`
	Codex   codex   `json:"provider"`
	Index   int     `json:"round_index"`
	Input   int     `json:"input_tokens_total"`
	Prefix  int     `json:"prefix_tokens"` // of them, what the cache held
	Output  int     `json:"output_tokens"` // with those of the reasoning
	Events  []event `json:"timing_events"`
	Tools   []tool  `json:"tools"`
}

// codex is whether the provider is Codex, whose agents run beside the one that started them.
type codex bool

func (c *codex) UnmarshalJSON(b []byte) error {
	*c = codex(bytes.Equal(b, []byte(`"codex"`)))
	return nil
}

type event struct {
	Kind string `json:"event_type"`
	At   stamp  `json:"timestamp"`
}

type tool struct {
	Name   string   `json:"tool_name"`
	Begin  stamp    `json:"emitted_at"`
	End    stamp    `json:"result_at"`
	TookMs *float64 `json:"tool_wall_latency_ms"`
}

// stamp is an instant; the zero time: not recorded.
type stamp struct{ time.Time }

// UnmarshalJSON reads a time by ISO 8601; one without a zone is in UTC.
func (s *stamp) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil || text == "" {
		return err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			s.Time = t
			return nil
		}
	}
	return fmt.Errorf("%q is no time: 2026-06-01T05:40:20.151Z would be one", text)
}

// isRound reports whether an object is a row of TraceLab's: a request with its session.
func isRound(object []byte) bool {
	var form struct {
		Session  string           `json:"session_id"`
		Input    *int             `json:"input_tokens_total"`
		Turns    *json.RawMessage `json:"turns"`
		Requests *json.RawMessage `json:"requests"`
	}
	return json.Unmarshal(object, &form) == nil && form.Session != "" && form.Input != nil && form.Turns == nil && form.Requests == nil
}

// rounds are rows by their sessions.
type rounds struct {
	list []*roundSession
	by   map[string]*roundSession
	seen map[uint64]bool // keys of rows
	seed maphash.Seed
}

// roundSession is what the rows of one session say.
type roundSession struct {
	id          string
	owner       [2]string // user and project
	number      int       // in the order of first rows
	rounds      []round
	spawns      []spawn
	first, last time.Time // of all that is dated; zero: nothing is
	async       asyncSpan
	undated     int // requests without a time
	repeated    int // rows that were there before

	parent *roundSession // whose agent it is
	begun  spawn         // by which it was started
	agents []*roundSession
}

// round is one request, with its end where the answer is dated.
type round struct {
	sent, end             time.Time
	index                 int
	input, prefix, output int
}

// add keeps a row.
func (r *rounds) add(object []byte) error {
	var row tracelabRow
	if err := json.Unmarshal(object, &row); err != nil {
		return fmt.Errorf("%s", inWords(err))
	}
	if r.by == nil {
		r.by, r.seen, r.seed = map[string]*roundSession{}, map[uint64]bool{}, maphash.MakeSeed()
	}
	s := r.by[row.Session]
	if s == nil {
		s = &roundSession{id: row.Session, owner: [2]string{row.User, row.Project}, number: len(r.list)}
		r.by[row.Session] = s
		r.list = append(r.list, s)
	}
	if row.Key != "" {
		key := maphash.String(r.seed, row.Key)
		if r.seen[key] {
			s.repeated++
			return nil
		}
		r.seen[key] = true
	}
	s.add(row)
	return nil
}

func (s *roundSession) add(row tracelabRow) {
	for _, e := range row.Events {
		s.dated(e.At.Time)
	}
	for _, t := range row.Tools {
		s.dated(t.Begin.Time)
		s.dated(t.End.Time)
	}
	x, ok := timed(row)
	if !ok {
		s.undated++
		return
	}
	s.rounds = append(s.rounds, x)
	for _, t := range row.Tools {
		s.spawn(bool(row.Codex), t, x.end)
	}
}

func (s *roundSession) dated(at time.Time) {
	if at.IsZero() {
		return
	}
	if s.first.IsZero() || at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
}

// timed is a request with its times: it was sent when the last of what it was made of was
// there, a message or the results of tools, and had ended with the last of its answer.
// A request of which no input is dated was sent when its answer began; one without
// any of both is not ok.
func timed(row tracelabRow) (x round, ok bool) {
	var in, out, begin time.Time
	for _, e := range row.Events {
		switch at := e.At.Time; {
		case at.IsZero():
		case e.Kind == "user_message" || e.Kind == "tool_result":
			if at.After(in) {
				in = at
			}
		case e.Kind == "text" || e.Kind == "reasoning" || e.Kind == "tool_call":
			if at.After(out) {
				out = at
			}
			if begin.IsZero() || at.Before(begin) {
				begin = at
			}
		}
	}
	x = round{sent: in, end: out, index: row.Index, input: row.Input, prefix: row.Prefix, output: row.Output}
	if in.IsZero() {
		x.sent = begin
	}
	if x.end.Before(x.sent) {
		x.end = x.sent
	}
	return x, !x.sent.IsZero()
}

// inOrder sorts the requests of a session by their times; those of one instant by their number.
func (s *roundSession) inOrder() {
	slices.SortStableFunc(s.rounds, func(a, b round) int {
		return cmp.Or(a.sent.Compare(b.sent), cmp.Compare(a.index, b.index))
	})
}

// sessions joins the sessions that were read, and gives those that no other one started.
func (r *rounds) sessions(keep func(Read)) error {
	for _, s := range r.list {
		s.inOrder()
	}
	join(r.list)
	for _, s := range r.list {
		if s.parent != nil {
			continue
		}
		read, err := s.read()
		if err != nil {
			return fmt.Errorf("session %s: %w", s.id, err)
		}
		keep(read)
	}
	*r = rounds{}
	return nil
}

// longestSpan is how long a session can have taken: agents that are gone on with after
// years are a fault of clocks.
const longestSpan = 10 * 365 * 24 * time.Hour

// read is the session with its agents.
func (s *roundSession) read() (Read, error) {
	if s.last.Sub(s.first) > longestSpan {
		return Read{}, fmt.Errorf("its times are %s and %s, which is no session", s.first.Format(time.DateOnly), s.last.Format(time.DateOnly))
	}
	var counts Read
	nextID := int64(0)
	items := s.items("", s.first, &nextID, &counts)
	b := wekaBuilder{}
	b.level(items, edge{})
	out := Session{ID: s.id, Block: DefaultBlock, Turns: b.turns}.inOrder()
	read, err := out.read()
	read.Undated, read.Repeated, read.Joined = counts.Undated, counts.Repeated, counts.Joined
	return read, err
}

// items are the requests of a session and its agents, on the time of the first session.
func (s *roundSession) items(agent string, start time.Time, nextID *int64, counts *Read) []item {
	counts.Undated += s.undated
	counts.Repeated += s.repeated
	var out []item
	blocks := blocksOf(s.rounds, nextID)
	for i, x := range s.rounds {
		out = append(out, item{
			start: x.sent.Sub(start), end: x.end.Sub(start), think: -1, agent: agent,
			turn: wekaRequest{Input: x.input, Output: x.output, Blocks: blocks[i]},
		})
	}
	for _, a := range s.agents {
		counts.Joined++
		inner := a.items(agent+"/"+a.id, start, nextID, counts)
		if len(inner) == 0 {
			continue
		}
		// It waits for the request that started it, though the call stood before the end of the answer.
		x := item{start: a.begun.after.Sub(start), inner: inner}
		for _, y := range inner {
			x.end = max(x.end, y.end)
		}
		x.end = max(x.end, x.start)
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Compare(a.start, b.start) })
	return out
}

// blocksOf are ids by which each prompt begins as the one before it for as many whole
// blocks as the provider's cache held of it. What no other prompt has gets no id: that
// is the request's own.
func blocksOf(list []round, nextID *int64) [][]int64 {
	keep := make([]int, len(list)+1) // blocks in common with the request before; after the last one none
	for i := 1; i < len(list); i++ {
		keep[i] = max(0, min(list[i].prefix, list[i-1].input, list[i].input)) / DefaultBlock
	}
	out := make([][]int64, len(list))
	var ids []int64
	for i := range list {
		if i == 0 || keep[i] < keep[i-1] { // the ids from here on, as far as they only grow, are one list
			end := i
			for keep[end+1] >= keep[end] && end+1 < len(list) {
				end++
			}
			grown := append(make([]int64, 0, keep[end]), ids[:min(keep[i], len(ids))]...)
			for len(grown) < keep[end] {
				*nextID++
				grown = append(grown, *nextID)
			}
			ids = grown
		}
		n := max(keep[i], keep[i+1])
		out[i] = ids[:n:n]
	}
	return out
}
