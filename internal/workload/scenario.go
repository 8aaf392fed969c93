package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"perflab/internal/field"
)

// scenario is how the lengths of the random dataset are drawn, in the notation
// of genai-bench.
type scenario struct {
	kind    byte   // D, N, U, E or R
	in, out [2]int // D: length; N: mean and standard deviation; U: bounds; E, R: of a text or document, then of the query
}

// scenarios are the forms of the notation, each with its meaning.
var scenarios = []struct {
	kind    byte
	form    string
	groups  []int // numbers in each pair of parentheses
	meaning string
}{
	{'D', "D(100,100)", []int{2}, "input and output tokens of each request"},
	{'N', "N(480,240)/(300,150)", []int{2, 2}, "mean and standard deviation of input and output tokens"},
	{'U', "U(50,100)/(200,250)", []int{2, 2}, "least and most input and output tokens"},
	{'U', "U(100,200)", []int{2}, "most input and output tokens, from 1"},
	{'E', "E(1024)", []int{1}, "tokens of a text to embed"},
	{'R', "R(1024,100)", []int{2}, "tokens of a document and of the query to rank it against"},
}

// parseScenario reads a scenario; the error of a malformed one shows a right
// one.
func parseScenario(text string) (scenario, error) {
	groups, ok := parseGroups(text)
	if ok {
		for _, form := range scenarios {
			if text[0] != form.kind || len(groups) != len(form.groups) {
				continue
			}
			fits := true
			for i, n := range form.groups {
				fits = fits && len(groups[i]) == n
			}
			if fits {
				return newScenario(text, groups)
			}
		}
	}
	var forms []string
	for _, form := range scenarios {
		if text != "" && form.kind == text[0] {
			forms = append(forms, fmt.Sprintf("%s (%s)", form.form, form.meaning))
		}
	}
	if forms == nil {
		for _, form := range scenarios {
			forms = append(forms, form.form)
		}
	}
	return scenario{}, field.Errorf("scenario", "%q must be of the form %s", text, either(forms))
}

// parseGroups splits "X(1,2)/(3,4)" into its numbers.
func parseGroups(text string) (groups [][]int, ok bool) {
	if text == "" {
		return nil, false
	}
	for part := range strings.SplitSeq(text[1:], "/") {
		inner, opened := strings.CutPrefix(part, "(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !opened || !closed {
			return nil, false
		}
		var group []int
		for number := range strings.SplitSeq(inner, ",") {
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil {
				return nil, false
			}
			group = append(group, int(n))
		}
		groups = append(groups, group)
	}
	return groups, true
}

// newScenario checks the numbers of a form that fits.
func newScenario(text string, groups [][]int) (scenario, error) {
	sc := scenario{kind: text[0]}
	copy(sc.in[:], groups[0])
	switch {
	case sc.kind == 'D':
		sc.in, sc.out = [2]int{sc.in[0]}, [2]int{sc.in[1]}
	case sc.kind == 'U' && len(groups) == 1:
		sc.in, sc.out = [2]int{1, sc.in[0]}, [2]int{1, sc.in[1]}
	case len(groups) == 2:
		copy(sc.out[:], groups[1])
	}
	for i, group := range groups {
		for j, n := range group {
			if n > maxTokens {
				return scenario{}, field.Errorf("scenario", "%s: %d is over the limit of %d tokens", text, n, maxTokens)
			}
			if n < 1 && !(sc.kind == 'N' && j == 1) {
				return scenario{}, field.Errorf("scenario", "%s: number %d of pair %d must be at least 1", text, j+1, i+1)
			}
		}
	}
	if sc.kind == 'U' && (sc.in[0] > sc.in[1] || sc.out[0] > sc.out[1]) {
		return scenario{}, field.Errorf("scenario", "%s: the first number of a pair must not be above the second, as in U(50,100)/(200,250)", text)
	}
	return sc, nil
}

// documents says whether the scenario is of texts that get no answer.
func (sc scenario) documents() bool { return sc.kind == 'E' || sc.kind == 'R' }

// prompt returns the length of the text in the prompt's place: the query, or
// the first text to embed.
func (sc scenario) prompt() int {
	if sc.kind == 'R' {
		return sc.in[1]
	}
	return sc.in[0]
}

// beside returns how many documents stand beside the prompt for a batch size.
func (sc scenario) beside(batch int) int {
	if sc.kind == 'R' {
		return batch
	}
	return batch - 1
}

// draw returns the lengths of one request: at least 1 token, at most maxTokens.
func (sc scenario) draw(in, out *rand.Rand, batch int) row {
	switch sc.kind {
	case 'D':
		return row{input: sc.in[0], output: sc.out[0]}
	case 'N':
		return row{input: normal(in, sc.in), output: normal(out, sc.out)}
	case 'U':
		return row{
			input:  sc.in[0] + in.IntN(sc.in[1]-sc.in[0]+1),
			output: sc.out[0] + out.IntN(sc.out[1]-sc.out[0]+1),
		}
	}
	n := sc.beside(batch)
	return row{input: sc.prompt() + n*sc.in[0], documents: n}
}

// normal draws a length from the normal distribution with mean and standard
// deviation p, rounded to a whole one and cut where no length is.
func normal(rng *rand.Rand, p [2]int) int {
	x := math.Round(float64(p[0]) + float64(p[1])*rng.NormFloat64())
	return int(min(max(x, 1), maxTokens))
}

// lengthRange returns the bounds [floor(L(1-r)), ceil(L(1+r))], at least 1.
func lengthRange(length int, ratio float64) (lo, hi int) {
	l := float64(length)
	return max(1, int(math.Floor(l*(1-ratio)))), max(1, int(math.Ceil(l*(1+ratio))))
}

// around draws a length uniformly from its range.
func around(rng *rand.Rand, length int, ratio float64) int {
	lo, hi := lengthRange(length, ratio)
	return lo + rng.IntN(hi-lo+1)
}
