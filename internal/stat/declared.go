package stat

import "math"

// Declared is what a simulated engine is said to do to a model's answers. It
// measures nothing: it is there so that what judges answers can be tested, and
// every answer made by it is the same in every process.
//
// Two declarations answer the same question alike but for the difference of
// their Accuracy, and for Flips: a question has a difficulty, which all share,
// and is answered right below Accuracy.
type Declared struct {
	Accuracy  float64 // share of the questions answered right
	Flips     float64 // of the questions answered otherwise than by difficulty, half of them each way
	Agreement float64 // of continuations with those of no numerics: the mean share of their beginning that is the same; 1: all
	Numerics  string  // names whose flips and continuations they are; "": nobody's
}

// Right reports whether a question is answered right. Over all questions the
// share is Accuracy, whatever Flips is.
func (d Declared) Right(question string) bool {
	p := d.Accuracy
	right := Stream(0, "difficulty of "+question).Float64() < p
	if d.Flips <= 0 {
		return right
	}
	u := Stream(0, "flip of "+question+" by "+d.Numerics).Float64()
	half := min(d.Flips/2, p, 1-p)
	if right {
		return u >= half/p
	}
	return u < half/(1-p)
}

// Common is how many of the first n tokens of a continuation are those of every
// engine, before it takes a way of its own.
func (d Declared) Common(prompt string, n int) int {
	if d.Agreement >= 1 || d.Numerics == "" {
		return n
	}
	if d.Agreement <= 0 {
		return 0
	}
	// The mean of U^k is 1/(k+1).
	u := Stream(0, "way of "+prompt+" by "+d.Numerics).Float64()
	return int(math.Pow(u, 1/d.Agreement-1) * float64(n+1))
}
