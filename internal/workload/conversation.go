package workload

// conversation is one conversation: questions and answers in turn.
type conversation struct {
	system string
	head   int // tokens of system
	turns  []turn
	text   func(turn int, answer bool) string // pure
	tree   *tree                              // of a session of agents, in place of head and text; nil: one turn follows the other
}

// turn has the tokens of a question, of the dataset's own answer, and of the
// answer that is asked for.
type turn struct{ question, answer, output int }

// planned sums the prompts and answers of all turns, the prompts with the
// history as it is planned.
func (t conversation) planned(generated bool) (input, output int) {
	history := t.head
	for _, u := range t.turns {
		if t.tree != nil {
			history = 0
		}
		history += u.question
		input += history
		output += u.output
		if generated {
			history += u.output
		} else {
			history += u.answer
		}
	}
	return input, output
}

// open makes r the first turn of conversation k.
func (t conversation) open(r *Request, k, index int) {
	r.Index, r.Session, r.Turns, r.System = index, k+1, len(t.turns), t.system
	r.Input, r.Output = t.head+t.turns[0].question, t.turns[0].output
}

// extents tells the lengths of a conversation's turns, as far as they are planned.
func (t conversation) extents(generated bool, see func(Extent)) {
	history := t.head
	for _, u := range t.turns {
		if t.tree != nil {
			history = 0
		}
		see(Extent{history + u.question, u.output})
		answer := u.answer
		if generated {
			answer = u.output
		}
		history += u.question + answer
	}
}
