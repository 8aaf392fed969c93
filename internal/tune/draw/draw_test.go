package draw

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"perflab/internal/stat"
	"perflab/internal/tune"
)

// up is the objective of most tests.
var up = tune.Objective{Metric: "m", Higher: true}

// randomEnd is an end with figures that are powers of two, so that inverting them is exact
// and ties happen.
func randomEnd(r *rand.Rand, p tune.Proposal) tune.Observation {
	o := tune.Observation{Trial: p.Trial, Status: tune.Measured, Seconds: float64(r.IntN(20))}
	switch r.IntN(8) {
	case 0:
		o.Status, o.Reason = tune.Refused, "no memory"
	case 1:
		o.Status = []string{tune.Failed, tune.Void}[r.IntN(2)]
	default:
		o.Figures = map[string]map[string]float64{"w": {"m": math.Exp2(float64(r.IntN(4))), "ttft": math.Exp2(float64(r.IntN(3)))}}
	}
	return o
}

// inverted is an end with 1/m.
func inverted(o tune.Observation) tune.Observation {
	figures := map[string]map[string]float64{}
	for w, f := range o.Figures {
		figures[w] = maps.Clone(f)
		figures[w]["m"] = 1 / f["m"]
	}
	o.Figures = figures
	return o
}

// domain is a search space that knows no more than a product and a rule.
type domain struct {
	tune.Rules
	dims   []tune.Dimension
	refuse func(tune.Config) string
}

func (d domain) space() tune.SearchSpace { return tune.SearchSpace{Domain: d.dims, Rules: d} }

func (d domain) Refuse(c tune.Config) string {
	if d.refuse == nil {
		return ""
	}
	return d.refuse(c)
}

type newDrawer func(tune.SearchSpace, tune.Space, tune.Objective, tune.Budget, uint64) (*Search, error)

var drawers = map[string]newDrawer{"random": NewRandom, "grid": NewGrid, "tpe": NewTPE}

func dims(text string) []tune.Dimension {
	var out []tune.Dimension
	for line := range strings.FieldsSeq(text) { // name:a,b,c or name#1,2,3
		name, values, _ := strings.Cut(line, ":")
		d := tune.Dimension{}
		if n, v, ok := strings.Cut(line, "#"); ok {
			name, values, d.Ordered = n, v, true
		}
		d.Name, d.Values = name, strings.Split(values, ",")
		out = append(out, d)
	}
	return out
}

func drawer(t testing.TB, kind string, g domain, s tune.Space, o tune.Objective, b tune.Budget, seed uint64) *Search {
	t.Helper()
	d, err := drawers[kind](g.space(), s, o, b, seed)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// randomDomain refuses a share of its combinations, by a hash of them.
func randomDomain(r *rand.Rand) domain {
	var d domain
	for i := range 2 + r.IntN(3) {
		dim := tune.Dimension{Name: "abcd"[i : i+1], Ordered: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			dim.Values = append(dim.Values, "")
		}
		for v := range 1 + r.IntN(4) {
			dim.Values = append(dim.Values, fmt.Sprint(v))
		}
		d.dims = append(d.dims, dim)
	}
	if share := r.Uint32N(10); share > 2 {
		d.refuse = func(c tune.Config) string {
			h := fnv.New32a()
			h.Write(fmt.Append(nil, c))
			if h.Sum32()>>8%10 < share {
				return "refused by its hash"
			}
			return ""
		}
	}
	return d
}

// TestDrawProperties plays random searches and checks what holds for all.
func TestDrawProperties(t *testing.T) {
	t.Parallel()
	o := tune.Objective{Metric: "m", Higher: true, SLOs: []tune.Bound{{Metric: "ttft", Op: "<=", Limit: 2}}}
	inverse := tune.Objective{Metric: "m", SLOs: o.SLOs}
	space := tune.Space{Baseline: tune.Config{"a": "0", "b": "1", "z": "kept"}, Primary: "w"}
	for kind := range drawers {
		for seed := range uint64(60) {
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("%s, seed %d: %s", kind, seed, fmt.Sprintf(format, args...))
			}
			r := stat.Stream(seed, "domain")
			guide, budget := randomDomain(r), tune.Budget{Trials: []int{0, 5, 16, 30}[r.IntN(4)]}
			a, b := drawer(t, kind, guide, space, o, budget, seed), drawer(t, kind, guide, space, inverse, budget, seed)
			var told []tune.Observation
			var asked []tune.Proposal
			seen := map[string]bool{}
			for p, ok := a.Ask(); ok; p, ok = a.Ask() {
				q, _ := b.Ask()
				mine := p.Clone()
				p.Config["scribbled"], p.Workloads[0] = "by the caller", "scribbled"
				p = mine
				if again, twice := a.Ask(); twice || !p.Equal(q) {
					fail("asked for %+v, again %+v, with 1/m %+v", p, again, q)
				}
				first := len(asked) == 0
				switch {
				case p.Trial != len(asked)+1 || p.Pass != 0 || p.Share != 0 || len(p.Workloads) != 1 || p.Workloads[0] != "w":
					fail("asked for %+v", p)
				case first && (p.Stage != tune.BaselineStage || !maps.Equal(p.Config, space.Baseline)):
					fail("begins with %+v", p)
				case !first && (p.Stage != tune.SearchStage || p.Label == "" || p.Config["z"] != "kept" || guide.Refuse(p.Config) != ""):
					fail("proposes %+v", p)
				case !first && slices.Contains(a.product.values(p.Config), -1):
					fail("proposes what the domain has not: %+v", p)
				case seen[fmt.Sprint(p.Config)] || seen["label "+p.Label]:
					fail("proposes again %+v", p)
				}
				seen[fmt.Sprint(p.Config)], seen["label "+p.Label] = true, true
				end := randomEnd(r, p)
				asked, told = append(asked, p), append(told, inverted(inverted(end)))
				a.Tell(end)
				b.Tell(inverted(end))
				for _, f := range end.Figures {
					clear(f) // the strategy keeps its own
				}
			}
			if budget.Trials > 0 && len(told) > budget.Trials {
				fail("%d trials, budget %d", len(told), budget.Trials)
			}
			if len(told) != budget.Trials { // then nothing is left
				for n := range a.product.size {
					if c := a.product.config(a.product.point(n)); guide.Refuse(c) == "" && !seen[fmt.Sprint(c)] {
						fail("%v is never proposed", c)
					}
				}
			}
			if p, ok := b.Ask(); ok {
				fail("with 1/m trial %d is asked for", p.Trial)
			}
			checkDrawn(t, fail, told, a, b)
		}
	}
}

// ahead reports whether an end is better than another: it keeps the bound and the other does not,
// it misses it by less, or its figure is larger.
func ahead(a, b tune.Observation) bool {
	x, y := a.Figures["w"], b.Figures["w"]
	if missed := max(2, x["ttft"]) - max(2, y["ttft"]); missed != 0 {
		return missed < 0
	}
	return x["m"] > y["m"]
}

func checkDrawn(t *testing.T, fail func(string, ...any), told []tune.Observation, a, b *Search) {
	t.Helper()
	res := a.Result()
	same := cmpopts.IgnoreFields(tune.Result{}, "Verdict")
	if diff := cmp.Diff(res, a.Result()); diff != "" {
		fail("a second Result differs: %s", diff)
	}
	if diff := cmp.Diff(res, b.Result(), same, cmpopts.IgnoreFields(tune.Decision{}, "Reason")); diff != "" {
		fail("result (-m +1/m):\n%s", diff)
	}
	best := 0
	for _, o := range told {
		if o.Status == tune.Measured && (best == 0 || ahead(o, told[best-1])) {
			best = o.Trial
		}
	}
	if res.Winner != best {
		fail("trial %d wins, and not the best measured, %d", res.Winner, best)
	}
	if res.Confirmed || res.WinnerConfirm != 0 || res.Verdict.Kind == "" {
		fail("nothing is repeated, but %+v", res)
	}
	if res.Winner > 1 && res.Verdict.Kind != tune.SearchBest {
		fail("the verdict does not warn: %+v", res.Verdict)
	}
}

// sparse has four engines, each with three settings of its own, on any of which
// the others refuse to start, and a layout that must fill eight GPUs: of all
// products one in 1.7 million runs.
func sparse() domain {
	d := dims("engine:a,b,c,d tp#1,2,4,8 pp#1,2,4,8 n#1,2,4,8")
	for _, e := range "abcd" {
		for i := range 3 {
			d = append(d, tune.Dimension{Name: fmt.Sprintf("%c%d", e, i), Values: []string{"", "1", "2", "3"}, Ordered: true})
		}
	}
	return domain{dims: d, refuse: func(c tune.Config) string {
		product := 1
		for _, name := range []string{"tp", "pp", "n"} {
			v, _ := strconv.Atoi(c[name])
			product *= v
		}
		if product != 8 {
			return "does not fill the node"
		}
		for name := range c {
			if len(name) == 2 && name[1] <= '9' && name[:1] != c["engine"] {
				return name + " is not a setting of " + c["engine"]
			}
		}
		return ""
	}}
}

func TestDrawSparse(t *testing.T) {
	space := tune.Space{Baseline: tune.Config{"engine": "a", "tp": "8", "pp": "1", "n": "1", "a1": "2"}, Primary: "w"}
	for kind := range drawers {
		used, set, asks := map[string]int{}, 0, 0
		guide := sparse()
		rule := guide.refuse
		guide.refuse = func(c tune.Config) string { asks++; return rule(c) }
		d := drawer(t, kind, guide, space, up, tune.Budget{Trials: 61}, 7)
		for p, ok := d.Ask(); ok; p, ok = d.Ask() {
			if p.Trial > 1 {
				used[p.Config["engine"]]++
				used["tp"+p.Config["tp"]]++
				set += len(p.Config) - 4
			}
			d.Tell(tune.Observation{Trial: p.Trial, Status: tune.Measured, Figures: map[string]map[string]float64{"w": {"m": 1 + float64(p.Trial%7)}}})
		}
		if len(d.configs) != 61 {
			t.Errorf("%s ends after %d trials: %s", kind, len(d.configs), d.Result().Verdict.Kind)
		}
		t.Logf("%s: %v, %d settings, the guide was asked %d times", kind, used, set, asks)
		for _, name := range []string{"a", "b", "c", "d", "tp1", "tp2", "tp4", "tp8"} {
			if used[name] < 4 {
				t.Errorf("%s draws %s %d times in 60", kind, name, used[name])
			}
		}
		if set < 60 {
			t.Errorf("%s sets %d parameters in 60 configurations", kind, set)
		}
	}
}

// TestGridSpreads: the first few of a grid have each value of each parameter
// about equally often, and all of it has every combination once.
func TestGridSpreads(t *testing.T) {
	for _, text := range []string{"a#1,2,3,4 b:x,y,z c#1,2,3,4,5 d:on,off", "a:1,2 b:1,2 c:1,2 d:1,2 e:1,2 f:1,2 g:1,2", "a#1,2,3,4,5,6,7 b#1,2,3,4,5,6,7,8", "a:1,2,3"} {
		guide := domain{dims: dims(text)}
		d := drawer(t, "grid", guide, tune.Space{Baseline: tune.Config{"z": "1"}, Primary: "w"}, up, tune.Budget{}, 3)
		size := int(d.product.size)
		used := map[string]int{}
		seen := map[string]bool{}
		part := (size + 3) / 4
		for p, ok := d.Ask(); ok; p, ok = d.Ask() {
			seen[fmt.Sprint(p.Config)] = true
			for _, dim := range guide.dims {
				if p.Trial > 1 && p.Trial <= part+1 {
					used[dim.Name+p.Config[dim.Name]]++
				}
			}
			d.Tell(tune.Observation{Trial: p.Trial, Status: tune.Refused})
		}
		if len(seen) != size+1 {
			t.Errorf("%s: %d of %d combinations", text, len(seen)-1, size)
		}
		for _, dim := range guide.dims {
			for _, v := range dim.Values {
				fair := float64(part) / float64(len(dim.Values))
				if n := float64(used[dim.Name+v]); part > 2 && math.Abs(n-fair) > 1.5+fair/2 {
					t.Errorf("%s: %s has the value %s %v times in %d", text, dim.Name, v, n, part)
				}
			}
		}
	}
}

func TestStrided(t *testing.T) {
	for _, size := range []uint64{1, 2, 3, 10, 89, 120, 1024} {
		met := map[uint64]bool{}
		for n := range size {
			met[strided(size-1, stride(size), n, size)] = true
		}
		if len(met) != int(size) {
			t.Errorf("of %d numbers %d are met", size, len(met))
		}
	}
	const large = 1<<63 + 5 // where products of 64 bits overflow
	if a, b := strided(large-1, large-1, large-1, large), uint64(0); a != b {
		t.Errorf("a stride of -1 from -1, -1 times, ends at %d, want %d", a, b)
	}
}

// TestDrawTimeBudget: no trial begins that, as long as the longest, would not fit.
func TestDrawTimeBudget(t *testing.T) {
	guide := domain{dims: dims("a#1,2,3,4,5,6,7,8,9 b#1,2,3,4,5,6,7,8,9")}
	for kind := range drawers {
		d := drawer(t, kind, guide, tune.Space{Baseline: tune.Config{"a": "1"}, Primary: "w"}, up, tune.Budget{Time: 100 * time.Second}, 1)
		for p, ok := d.Ask(); ok; p, ok = d.Ask() {
			d.Tell(tune.Observation{Trial: p.Trial, Status: tune.Failed, Seconds: 30})
		}
		if len(d.configs) != 3 {
			t.Errorf("%s: %d trials of 30 s in 100 s", kind, len(d.configs))
		}
	}
}

// TestDrawResumes: told the ends of any first trials again, a new search goes on with the
// same proposals to the same end.
func TestDrawResumes(t *testing.T) {
	guide := domain{dims: dims("a#1,2,3,4 b:x,y,z c:,on")}
	space, budget := tune.Space{Baseline: tune.Config{"a": "1", "b": "x"}, Primary: "w"}, tune.Budget{Trials: 15}
	for kind := range drawers {
		r := stat.Stream(5, "ends")
		first := drawer(t, kind, guide, space, up, budget, 5)
		var asked []tune.Proposal
		var told []tune.Observation
		for p, ok := first.Ask(); ok; p, ok = first.Ask() {
			asked, told = append(asked, p), append(told, randomEnd(r, p))
			first.Tell(told[len(told)-1])
		}
		if len(told) != 15 {
			t.Fatalf("%s: %d trials", kind, len(told))
		}
		for cut := range told {
			again := drawer(t, kind, guide, space, up, budget, 5)
			for n, o := range told {
				p, ok := again.Ask()
				if diff := cmp.Diff(asked[n], p); !ok || diff != "" {
					t.Fatalf("%s, trial %d (-first +again):\n%s", kind, n+1, diff)
				}
				if n == cut {
					if got := again.Result().Verdict; n > 0 && (got.After == nil || *got.After != n) || n == 0 && got.Kind != tune.NothingYet {
						t.Errorf("%s: after %d trials %+v", kind, n, got)
					}
				}
				again.Tell(o)
			}
			if diff := cmp.Diff(first.Result(), again.Result()); diff != "" {
				t.Fatalf("%s: result (-first +again):\n%s", kind, diff)
			}
		}
	}
}

func TestNewDrawRefuses(t *testing.T) {
	space := tune.Space{Baseline: tune.Config{"a": "1"}, Primary: "w", Stages: []tune.Stage{{Name: "ignored"}}}
	guide := domain{dims: dims("a:1,2,3")}
	var many []tune.Dimension
	for i := range 64 {
		many = append(many, tune.Dimension{Name: fmt.Sprint(i), Values: []string{"", "1"}})
	}
	for _, c := range []struct {
		kind   string
		guide  domain
		space  tune.Space
		o      tune.Objective
		budget tune.Budget
		want   string // nothing: accepted
	}{
		{"random", guide, space, up, tune.Budget{}, ""},
		{"tpe", guide, tune.Space{}, up, tune.Budget{}, "the baseline sets no parameter"},
		{"tpe", guide, space, tune.Objective{}, tune.Budget{}, "names no metric"},
		{"tpe", guide, space, up, tune.Budget{Trials: 1}, "give at least 2"},
		{"tpe", guide, space, up, tune.Budget{Trials: -1}, "the budget has -1 trials"},
		{"random", domain{}, space, up, tune.Budget{}, "no parameter to draw"},
		{"random", domain{dims: many}, space, up, tune.Budget{}, "the search no budget"},
		{"random", domain{dims: many}, space, up, tune.Budget{Trials: 5}, ""},
		{"grid", domain{dims: many}, space, up, tune.Budget{Trials: 5}, "more combinations than can be numbered"},
		{"grid", domain{dims: many[:63]}, space, up, tune.Budget{Trials: 5}, ""},
		{"grid", guide, space, tune.Objective{Metric: "m", SLOs: []tune.Bound{{Metric: "x", Op: ">=", Of: tune.Plus}}}, tune.Budget{}, "one of the baseline's"},
	} {
		_, err := drawers[c.kind](c.guide.space(), c.space, c.o, c.budget, 1)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}
