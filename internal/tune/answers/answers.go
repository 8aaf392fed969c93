// Package answers holds the answers of a configuration to questions against those of the baseline, one
// question at a time. Pure.
//
//	test, passes := answers.Guard{Margin: 0.02}.Judge("FP8", base, other) // "1101...": right or wrong
package answers

import (
	"math"

	"perflab/internal/stat"
)

// Guard is what the answers of a configuration must keep.
type Guard struct {
	Margin    float64 `json:"margin"`              // share of right answers that may be lost: 0.02 is two points
	Agreement float64 `json:"agreement,omitempty"` // least share of greedy continuations that is the baseline's in an early rung, where there is one
	Questions int     `json:"questions,omitempty"` // asked in a launch; 0: answers are each to another question
}

// Test is one of answers against those of the baseline, question by
// question.
type Test struct {
	Label     string  `json:"label"`
	Questions int     `json:"questions"` // answered, those of every launch
	Right     int     `json:"right"`
	Base      int     `json:"baseline_right"`
	Lost      int     `json:"lost"`               // the baseline alone was right
	Won       int     `json:"won"`                // it alone was right
	Change    float64 `json:"change"`             // share of right answers, less the baseline's
	Error     float64 `json:"std_error"`          // of Change, paired
	Low       float64 `json:"low"`                // one-sided 95 % bound of Change
	P         float64 `json:"p_mcnemar"`          // two-sided, exact: no change at all
	Margin    float64 `json:"margin"`             // what may be lost
	Accepted  bool    `json:"accepted"`           // Low >= -Margin
	Sentence  string  `json:"sentence,omitempty"` // in words, by whoever wrote them

	Rounds int    `json:"rounds,omitempty"` // that the questions were asked; 0: 1
	Needed int    `json:"needed,omitempty"` // questions that would tell; 0: not known, or no more
	Asked  string `json:"asked,omitempty"`  // the configuration that was asked, which answers alike; "": Label
	Reason string `json:"reason,omitempty"` // why answers could not be paired
}

// guardConfidence is that of the one-sided bound by which answers pass.
const guardConfidence = 0.95

// Judge holds the answers of a configuration against the baseline's, question by
// question: 1 right, 0 wrong, in the same order. It reports whether they pass:
// a loss of more than the margin must be ruled out, so that neither few
// questions nor none ever pass for lack of data. Of several launches the answers
// follow each other; Guard.Questions says where the questions begin again.
func (g Guard) Judge(label, base, answers string) (Test, bool) {
	out := Test{Label: label, Questions: len(answers), Margin: g.Margin}
	p, err := stat.CountPairs(base, answers, g.Questions)
	if err != nil {
		out.Questions = min(len(base), len(answers))
		out.Reason = err.Error()
		out.Low, out.P = -1, 1
		return out, false
	}
	out.Base, out.Right, out.Lost, out.Won = p.Both+p.Lost, p.Both+p.Won, p.Lost, p.Won
	out.Change, out.Error, out.Low, out.P = p.Change(), p.SE(), p.Low(guardConfidence), p.McNemar()
	out.Accepted = out.Low >= -g.Margin
	out.Rounds, out.Needed = p.Rounds, out.needed(p)
	return out, out.Accepted
}

// needed is how many questions would pass four times in five if the change is
// the one that was seen, to two digits; 0 where that is none's affair.
func (d Test) needed(p stat.Pairs) int {
	if d.Accepted {
		return 0
	}
	answers := float64(d.Questions)
	n := stat.PairsNeeded(float64(p.Lost+p.Won)/answers, d.Change, d.Margin, guardConfidence, 0.8)
	if n <= d.Questions/p.Rounds || n > 100_000 {
		return 0
	}
	step := int(math.Pow(10, math.Max(0, math.Floor(math.Log10(float64(n)))-1)))
	return (n + step - 1) / step * step
}
