package tune

import (
	"math"

	"perflab/internal/stat"
)

// guardConfidence is that of the one-sided bound by which answers pass.
const guardConfidence = 0.95

// Judge holds the answers of a configuration against the baseline's, question by
// question: 1 right, 0 wrong, in the same order. It reports whether they pass:
// a loss of more than the margin must be ruled out, so that neither few
// questions nor none ever pass for lack of data. Of several launches the answers
// follow each other; Guard.Questions says where the questions begin again.
func (g Guard) Judge(label, base, answers string) (PairedTest, bool) {
	out := PairedTest{Label: label, Questions: len(answers), Margin: g.Margin}
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
func (d PairedTest) needed(p stat.Pairs) int {
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
