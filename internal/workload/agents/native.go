package agents

import (
	"fmt"
)

// nativeSession is a session in perflab's own form: see docs/agents.md.
type nativeSession struct {
	ID    string       `json:"id"`
	Block int          `json:"block_size"`
	Scope string       `json:"scope"` // of the ids of blocks: local, global
	Turns []nativeTurn `json:"turns"`
}

// nativeTurn is one request. After has places in turns, from 0; left out, it is
// the agent's request before, and for the first one of another agent nothing.
type nativeTurn struct {
	Agent  string  `json:"agent"`
	Input  int     `json:"input_tokens"`
	Output int     `json:"output_tokens"`
	Blocks []int64 `json:"blocks"`
	After  *[]int  `json:"after"`
	Idle   float64 `json:"idle_s"`
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
