// Package scenario reads how the lengths of random requests are drawn, in the notation of genai-bench, and draws
// them.
//
//	sc, err := scenario.Parse("N(480,240)/(300,150)")
//	lengths := sc.Draw(in, out, 1)
//
// Its own package because it knows lengths and no requests.
package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"perflab/internal/field"
)

// MaxTokens is the most that a number of a scenario, or a drawn length, may be.
const MaxTokens = 1 << 24

// Scenario is how the lengths of requests are drawn. Its zero value is none.
type Scenario struct {
	kind    byte   // D, N, U, E or R
	in, out [2]int // D: length; N: mean and standard deviation; U: bounds; E, R: of a text or document, then of the query
}

// Lengths are those of one request in tokens.
type Lengths struct {
	Input, Output int
	Documents     int // beside the prompt, whose tokens are among the input
}

// Drawn reports whether there is a scenario.
func (sc Scenario) Drawn() bool { return sc.kind != 0 }

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

// Parse reads a scenario; the error of a malformed one shows a right
// one.
func Parse(text string) (Scenario, error) {
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
	list := forms[0]
	if last := len(forms) - 1; last > 0 {
		list = strings.Join(forms[:last], ", ") + " or " + forms[last]
	}
	return Scenario{}, field.Errorf("scenario", "%q must be of the form %s", text, list)
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
func newScenario(text string, groups [][]int) (Scenario, error) {
	sc := Scenario{kind: text[0]}
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
			if n > MaxTokens {
				return Scenario{}, field.Errorf("scenario", "%s: %d is over the limit of %d tokens", text, n, MaxTokens)
			}
			if n < 1 && !(sc.kind == 'N' && j == 1) {
				return Scenario{}, field.Errorf("scenario", "%s: number %d of pair %d must be at least 1", text, j+1, i+1)
			}
		}
	}
	if sc.kind == 'U' && (sc.in[0] > sc.in[1] || sc.out[0] > sc.out[1]) {
		return Scenario{}, field.Errorf("scenario", "%s: the first number of a pair must not be above the second, as in U(50,100)/(200,250)", text)
	}
	return sc, nil
}

// Documents says whether the scenario is of texts that get no answer.
func (sc Scenario) Documents() bool { return sc.kind == 'E' || sc.kind == 'R' }

// Prompt returns the length of the text in the prompt's place: the query, or
// the first text to embed.
func (sc Scenario) Prompt() int {
	if sc.kind == 'R' {
		return sc.in[1]
	}
	return sc.in[0]
}

// Beside returns how many documents stand beside the prompt for a batch size.
func (sc Scenario) Beside(batch int) int {
	if sc.kind == 'R' {
		return batch
	}
	return batch - 1
}

// Draw returns the lengths of one request: at least 1 token, at most MaxTokens.
func (sc Scenario) Draw(in, out *rand.Rand, batch int) Lengths {
	switch sc.kind {
	case 'D':
		return Lengths{Input: sc.in[0], Output: sc.out[0]}
	case 'N':
		return Lengths{Input: normal(in, sc.in), Output: normal(out, sc.out)}
	case 'U':
		return Lengths{
			Input:  sc.in[0] + in.IntN(sc.in[1]-sc.in[0]+1),
			Output: sc.out[0] + out.IntN(sc.out[1]-sc.out[0]+1),
		}
	}
	n := sc.Beside(batch)
	return Lengths{Input: sc.Prompt() + n*sc.in[0], Documents: n}
}

// normal draws a length from the normal distribution with mean and standard
// deviation p, rounded to a whole one and cut where no length is.
func normal(rng *rand.Rand, p [2]int) int {
	x := math.Round(float64(p[0]) + float64(p[1])*rng.NormFloat64())
	return int(min(max(x, 1), MaxTokens))
}

// Text returns the length of a document, or of a text to embed.
func (sc Scenario) Text() int { return sc.in[0] }
