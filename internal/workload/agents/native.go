package agents

import (
	"encoding/json"
	"fmt"
	"slices"
)

// nativeSession is a session in perflab's own form: see docs/agents.md.
type nativeSession struct {
	ID    string       `json:"id,omitzero"`
	Block int          `json:"block_size,omitzero"`
	Scope string       `json:"scope,omitzero"` // of the ids of blocks: local, global
	Turns []nativeTurn `json:"turns"`
}

// nativeTurn is one request. After has places in turns, from 0; left out, it is
// the agent's request before, and for the first one of another agent nothing.
type nativeTurn struct {
	Agent  string  `json:"agent,omitzero"`
	Input  int     `json:"input_tokens"`
	Output int     `json:"output_tokens"`
	Blocks []int64 `json:"blocks"`
	After  *[]int  `json:"after,omitempty"`
	Idle   float64 `json:"idle_s,omitzero"`
}

const nativeKeys = "id, block_size, scope, turns; of a turn agent, input_tokens, output_tokens, blocks, after, idle_s"

func (n nativeSession) session() (Session, error) {
	s := Session{ID: n.ID, Block: n.Block, Turns: make([]Turn, len(n.Turns))}
	var err error
	if s.Global, err = global("scope", n.Scope); err != nil {
		return Session{}, err
	}
	if s.Block == 0 {
		s.Block = DefaultBlock
	}
	last := map[string]int{}
	for i, t := range n.Turns {
		turn := Turn{Agent: t.Agent, Input: t.Input, Output: t.Output, Blocks: t.Blocks}
		if turn.Idle, err = seconds(t.Idle); err != nil {
			return Session{}, fmt.Errorf("turns[%d]: idle_s: %w", i, err)
		}
		if before, ok := last[t.Agent]; t.After != nil {
			turn.After = *t.After
		} else if ok {
			turn.After = []int{before}
		}
		last[t.Agent] = i
		s.Turns[i] = turn
	}
	return s, nil
}

// DefaultBlock is how many tokens a block has where a session does not say.
const DefaultBlock = 64

// global reads the scope of ids.
func global(key, scope string) (bool, error) {
	switch scope {
	case "", "local":
		return false, nil
	case "global":
		return true, nil
	}
	return false, fmt.Errorf("%s %q: the ids of blocks are local (to a session) or global", key, scope)
}

// Native is the session in perflab's own form, as Parse reads it.
func (s Session) Native() ([]byte, error) {
	n := nativeSession{ID: s.ID, Block: s.Block, Turns: make([]nativeTurn, len(s.Turns))}
	if s.Global {
		n.Scope = "global"
	}
	last := map[string][]int{}
	for i, t := range s.Turns {
		n.Turns[i] = nativeTurn{Agent: t.Agent, Input: t.Input, Output: t.Output, Blocks: t.Blocks, Idle: t.Idle.Seconds()}
		if !slices.Equal(t.After, last[t.Agent]) {
			n.Turns[i].After = new(append([]int{}, t.After...))
		}
		last[t.Agent] = []int{i}
	}
	return json.Marshal(n)
}
