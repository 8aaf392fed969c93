package agents

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// wekaSession is a session as WEKA's tester of caches records them, and as the
// published traces of coding agents have them.
type wekaSession struct {
	ID       string        `json:"id"`
	Block    int           `json:"block_size"`
	Scope    string        `json:"hash_id_scope"`
	Tools    int           `json:"tool_tokens"`   // part of every prompt's length, whose blocks say what is shared
	System   int           `json:"system_tokens"` // the same
	Requests []wekaRequest `json:"requests"`
}

// wekaRequest is a request ("n", or "s" with a stream) or an agent that was
// started, with its own requests ("subagent"). t is in seconds from the start of
// the session; within an agent it counts from the session's start as well, or,
// in older recordings, from the agent's.
type wekaRequest struct {
	Type     string        `json:"type"`
	T        float64       `json:"t"`
	Input    int           `json:"in"`
	Output   int           `json:"out"`
	Blocks   []int64       `json:"hash_ids"`
	Took     *float64      `json:"api_time"`   // seconds until its answer was there
	Think    *float64      `json:"think_time"` // seconds that the client waited before it
	Agent    string        `json:"agent_id"`
	Requests []wekaRequest `json:"requests"`
}

// item is a request, or an agent with all of its own, on the time of the session.
type item struct {
	start, end time.Duration
	turn       wekaRequest
	think      time.Duration // -1: not recorded
	agent      string
	inner      []item // of an agent; nil: a request
}

// edge is what follows waits for, and when the last of it ended.
type edge struct {
	after []int
	end   time.Duration
}

func (w wekaSession) session() (Session, error) {
	s := Session{ID: w.ID, Block: w.Block}
	var err error
	if s.Global, err = global("hash_id_scope", w.Scope); err != nil {
		return Session{}, err
	}
	if w.Tools < 0 || w.System < 0 {
		return Session{}, fmt.Errorf("tool_tokens %d and system_tokens %d cannot be negative", w.Tools, w.System)
	}
	items, err := wekaItems(w.Requests, 0, "", 0)
	if err != nil {
		return Session{}, err
	}
	b := wekaBuilder{}
	b.level(items, edge{})
	s.Turns = b.turns
	return s.inOrder(), nil
}

// mostDeep is how deep agents may stand in agents.
const mostDeep = 16

// wekaItems are requests in the order of their start.
func wekaItems(list []wekaRequest, offset time.Duration, agent string, deep int) ([]item, error) {
	if deep > mostDeep {
		return nil, fmt.Errorf("agents stand in agents more than %d deep", mostDeep)
	}
	var out []item
	for i, r := range list {
		x, err := r.item(offset, agent, deep)
		if err != nil {
			return nil, fmt.Errorf("requests[%d]: %w", i, err)
		}
		if x.inner == nil && r.Type == subagent {
			continue // it sent nothing
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Compare(a.start, b.start) })
	return out, nil
}

const subagent = "subagent"

func (r wekaRequest) item(offset time.Duration, agent string, deep int) (item, error) {
	at, err := instant(r.T)
	if err != nil {
		return item{}, err
	}
	x := item{start: offset + at, turn: r, agent: agent, think: -1}
	switch r.Type {
	case "n", "s":
		took, err := known(r.Took)
		if err != nil {
			return item{}, err
		}
		if r.Took == nil && r.Think != nil {
			x.think, err = known(r.Think)
		}
		x.end = x.start + took
		return x, err
	case subagent:
		inside := offset
		if relative(r) {
			inside = x.start
		}
		if x.inner, err = wekaItems(r.Requests, inside, agent+"/"+r.Agent, deep+1); err != nil || x.inner == nil {
			return item{}, err
		}
		for _, y := range x.inner {
			x.end = max(x.end, y.end)
		}
		x.end = max(x.end, x.start)
		return x, nil
	}
	return item{}, fmt.Errorf("type %q is none of n, s and subagent", r.Type)
}

// relative reports whether the times of an agent's requests count from its own
// start: one of them would be before it else.
func relative(r wekaRequest) bool {
	return slices.ContainsFunc(r.Requests, func(q wekaRequest) bool { return q.T+1e-6 < r.T })
}

// known is a recorded length of time; 0 where there is none that makes sense.
func known(s *float64) (time.Duration, error) {
	if s == nil || math.IsNaN(*s) || *s < 0 {
		return 0, nil
	}
	return instant(*s)
}

// instant is a recorded time to the microsecond: an end and the request that waited
// for it may differ by less.
func instant(s float64) (time.Duration, error) {
	d, err := seconds(s)
	return d.Round(time.Microsecond), err
}

// wekaBuilder makes turns of items.
type wekaBuilder struct{ turns []Turn }

// level makes the turns of one level: each waits for those that had ended when it
// began, but for what they themselves waited for. It returns what of the level
// nothing of it waits for.
func (b *wekaBuilder) level(items []item, before edge) edge {
	done := make([]edge, len(items))
	waited := make([]bool, len(items))
	for i, x := range items {
		from := before
		if ended, newest := endedBefore(items[:i], x.start); newest >= 0 {
			from = edge{}
			for _, k := range ended {
				waited[k] = true
				from.after = append(from.after, done[k].after...)
				from.end = max(from.end, done[k].end)
			}
		}
		if x.inner != nil {
			done[i] = b.level(x.inner, from)
			continue
		}
		idle := max(0, x.start-from.end)
		if x.think >= 0 {
			idle = x.think
		}
		t := Turn{
			Agent: x.agent, Input: x.turn.Input, Output: x.turn.Output, Blocks: x.turn.Blocks,
			After: slices.Clone(from.after), Idle: idle, At: x.start,
		}
		b.turns = append(b.turns, t)
		done[i] = edge{[]int{len(b.turns) - 1}, x.end}
	}
	var open edge
	for i := range items {
		if !waited[i] {
			open.after = append(open.after, done[i].after...)
			open.end = max(open.end, done[i].end)
		}
	}
	return open
}

// endedBefore are the items that had ended at an instant, without those that had
// ended before another of them began; newest is the one that began last, -1 for none.
func endedBefore(items []item, at time.Duration) (ended []int, newest int) {
	newest = -1
	for i, x := range items {
		if x.end <= at {
			newest = i
		}
	}
	for i, x := range items {
		if i == newest || x.end <= at && x.end > items[newest].start {
			ended = append(ended, i)
		}
	}
	return ended, newest
}

// inOrder sorts turns by their start, those that wait behind what they wait for,
// and counts time from the first.
func (s Session) inOrder() Session {
	order := make([]int, len(s.Turns))
	for i := range order {
		order[i] = i
	}
	// What a turn waits for began before it, or at the same instant and stands before it.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Turns[a].At, s.Turns[b].At) })
	place := make([]int, len(order))
	turns := make([]Turn, len(order))
	for to, from := range order {
		place[from] = to
		turns[to] = s.Turns[from]
	}
	for i := range turns {
		for j, k := range turns[i].After {
			turns[i].After[j] = place[k]
		}
		slices.Sort(turns[i].After)
	}
	if len(turns) > 0 {
		first := turns[0].At
		for i := range turns {
			turns[i].At -= first
			if len(turns[i].After) == 0 {
				turns[i].Idle = turns[i].At
			}
		}
	}
	s.Turns = turns
	return s
}
