package tune

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
)

// domain is a search space that knows no more than a product and a rule.
type domain struct {
	Rules
	dims   []Dimension
	refuse func(Config) string
}

func (d domain) space() SearchSpace { return SearchSpace{Domain: d.dims, Rules: d} }

func (d domain) Refuse(c Config) string {
	if d.refuse == nil {
		return ""
	}
	return d.refuse(c)
}

type newDrawer func(SearchSpace, Space, Objective, Budget, uint64) (*Draw, error)

var drawers = map[string]newDrawer{"random": NewRandom, "grid": NewGrid, "tpe": NewTPE}

func dims(text string) []Dimension {
	var out []Dimension
	for line := range strings.FieldsSeq(text) { // name:a,b,c or name#1,2,3
		name, values, _ := strings.Cut(line, ":")
		d := Dimension{}
		if n, v, ok := strings.Cut(line, "#"); ok {
			name, values, d.Ordered = n, v, true
		}
		d.Name, d.Values = name, strings.Split(values, ",")
		out = append(out, d)
	}
	return out
}

func drawer(t testing.TB, kind string, g domain, s Space, o Objective, b Budget, seed uint64) *Draw {
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
		dim := Dimension{Name: "abcd"[i : i+1], Ordered: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			dim.Values = append(dim.Values, "")
		}
		for v := range 1 + r.IntN(4) {
			dim.Values = append(dim.Values, fmt.Sprint(v))
		}
		d.dims = append(d.dims, dim)
	}
	if share := r.Uint32N(10); share > 2 {
		d.refuse = func(c Config) string {
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
	o := Objective{Metric: "m", Higher: true, SLOs: []Bound{{Metric: "ttft", Op: "<=", Limit: 2}}}
	inverse := Objective{Metric: "m", SLOs: o.SLOs}
	space := Space{Baseline: Config{"a": "0", "b": "1", "z": "kept"}, Primary: "w"}
	for kind := range drawers {
		for seed := range uint64(60) {
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("%s, seed %d: %s", kind, seed, fmt.Sprintf(format, args...))
			}
			r := stat.Stream(seed, "domain")
			guide, budget := randomDomain(r), Budget{Trials: []int{0, 5, 16, 30}[r.IntN(4)]}
			a, b := drawer(t, kind, guide, space, o, budget, seed), drawer(t, kind, guide, space, inverse, budget, seed)
			var told []Observation
			var asked []Proposal
			seen := map[string]bool{}
			for p, ok := a.Ask(); ok; p, ok = a.Ask() {
				q, _ := b.Ask()
				mine := p.clone()
				p.Config["scribbled"], p.Workloads[0] = "by the caller", "scribbled"
				p = mine
				if again, _ := a.Ask(); !p.equal(again) || !p.equal(q) {
					fail("asked for %+v, again %+v, with 1/m %+v", p, again, q)
				}
				first := len(asked) == 0
				switch {
				case p.Trial != len(asked)+1 || p.Pass != 0 || p.Share != 0 || len(p.Workloads) != 1 || p.Workloads[0] != "w":
					fail("asked for %+v", p)
				case first && (p.Stage != BaselineStage || !maps.Equal(p.Config, space.Baseline)):
					fail("begins with %+v", p)
				case !first && (p.Stage != SearchStage || p.Label == "" || p.Config["z"] != "kept" || guide.Refuse(p.Config) != ""):
					fail("proposes %+v", p)
				case !first && slices.Contains(a.product.values(p.Config), -1):
					fail("proposes what the domain has not: %+v", p)
				case seen[fmt.Sprint(p.Config)] || seen["label "+p.Label]:
					fail("proposes again %+v", p)
				}
				seen[fmt.Sprint(p.Config)], seen["label "+p.Label] = true, true
				end := randomEnd(r, p)
				asked, told = append(asked, p), append(told, end)
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
			checkDrawn(t, fail, a, b)
		}
	}
}

func checkDrawn(t *testing.T, fail func(string, ...any), a, b *Draw) {
	t.Helper()
	res := a.Result()
	same := cmpopts.IgnoreFields(Result{}, "Verdict")
	if diff := cmp.Diff(res, a.Result()); diff != "" {
		fail("a second Result differs: %s", diff)
	}
	if diff := cmp.Diff(res, b.Result(), same, cmpopts.IgnoreFields(Decision{}, "Reason")); diff != "" {
		fail("result (-m +1/m):\n%s", diff)
	}
	best := score{}
	for _, trial := range a.trials {
		if a.objective.prefer(trial.score, best) {
			best = trial.score
		}
	}
	if won := res.Winner; won == 0 != (best.class == none) || won > 0 && a.trials[won-1].score != best {
		fail("trial %d wins, and not the best measured", won)
	}
	if res.Confirmed || res.WinnerConfirm != 0 || res.Verdict.Kind == "" {
		fail("nothing is repeated, but %+v", res)
	}
	if res.Winner > 1 && res.Verdict.Kind != SearchBest {
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
			d = append(d, Dimension{Name: fmt.Sprintf("%c%d", e, i), Values: []string{"", "1", "2", "3"}, Ordered: true})
		}
	}
	return domain{dims: d, refuse: func(c Config) string {
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
	space := Space{Baseline: Config{"engine": "a", "tp": "8", "pp": "1", "n": "1", "a1": "2"}, Primary: "w"}
	for kind := range drawers {
		used, set, asks := map[string]int{}, 0, 0
		guide := sparse()
		rule := guide.refuse
		guide.refuse = func(c Config) string { asks++; return rule(c) }
		d := drawer(t, kind, guide, space, up, Budget{Trials: 61}, 7)
		for p, ok := d.Ask(); ok; p, ok = d.Ask() {
			if p.Trial > 1 {
				used[p.Config["engine"]]++
				used["tp"+p.Config["tp"]]++
				set += len(p.Config) - 4
			}
			d.Tell(Observation{Trial: p.Trial, Status: Measured, Figures: map[string]map[string]float64{"w": {"m": 1 + float64(p.Trial%7)}}})
		}
		if len(d.trials) != 61 {
			t.Errorf("%s ends after %d trials: %s", kind, len(d.trials), d.Result().Verdict.Kind)
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
		d := drawer(t, "grid", guide, Space{Baseline: Config{"z": "1"}, Primary: "w"}, up, Budget{}, 3)
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
			d.Tell(Observation{Trial: p.Trial, Status: Refused})
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
		d := drawer(t, kind, guide, Space{Baseline: Config{"a": "1"}, Primary: "w"}, up, Budget{Time: 100 * time.Second}, 1)
		for p, ok := d.Ask(); ok; p, ok = d.Ask() {
			d.Tell(Observation{Trial: p.Trial, Status: Failed, Seconds: 30})
		}
		if len(d.trials) != 3 {
			t.Errorf("%s: %d trials of 30 s in 100 s", kind, len(d.trials))
		}
	}
}

// TestDrawResumes: cut after any record, the journal leads a new search to the
// same proposals and the same end.
func TestDrawResumes(t *testing.T) {
	t.Parallel()
	guide := domain{dims: dims("a#1,2,3,4 b:x,y,z c:,on")}
	space, budget := Space{Baseline: Config{"a": "1", "b": "x"}, Primary: "w"}, Budget{Trials: 15}
	b := bench{}
	for i, a := range guide.dims[0].Values {
		for j, v := range guide.dims[1].Values {
			b[a+" "+v] = fmt.Sprint(10 + i*j)
			b[a+" "+v+" on"] = fmt.Sprint(11 + i - j)
		}
	}
	b["2 y"], b["3 x on"] = "refused: no memory", "failed: no port"
	for kind := range drawers {
		start := func() *Draw { return drawer(t, kind, guide, space, up, budget, 5) }
		full, first := &disk{}, start()
		if err := record(t, first, full, b); err != nil {
			t.Fatal(err)
		}
		whole := replay(t, full.Bytes())
		if len(whole.Trials) != 15 {
			t.Fatalf("%s: %d trials", kind, len(whole.Trials))
		}
		cut := 0
		for line := range strings.Lines(full.String()) {
			cut += len(line)
			var d disk
			d.Write(full.Bytes()[:cut])
			log := replay(t, d.Bytes())
			s := start()
			if _, err := Resume(s, log); err != nil {
				t.Fatalf("%s, cut at %d: %v", kind, cut, err)
			}
			j, err := OpenJournal(&d, log, head)
			if err != nil {
				t.Fatal(err)
			}
			if err := Run(t.Context(), s, j, evaluate(t, j, b, nil)); err != nil {
				t.Fatalf("%s, cut at %d: %v", kind, cut, err)
			}
			if diff := cmp.Diff(first.Result(), s.Result()); diff != "" {
				t.Fatalf("%s, cut at %d: result (-whole +resumed):\n%s", kind, cut, diff)
			}
			for i, again := range replay(t, d.Bytes()).Trials {
				if !again.Proposal.equal(whole.Trials[i].Proposal) {
					t.Fatalf("%s, cut at %d: trial %d is %+v", kind, cut, i+1, again.Proposal)
				}
			}
		}
	}
}

func TestDrawVerdicts(t *testing.T) {
	o := Objective{Metric: "m", Higher: true, SLOs: []Bound{{Metric: "ttft", Op: "<=", Limit: 100}}}
	guide := domain{dims: dims("a:0,1,2")}
	for want, b := range map[string]bench{
		"a=2 is +50.0 % on m over the baseline (300 against 200), the best of 3 single measurements; nothing was repeated, so a part of the gain may be luck": {
			"0": "m=200 ttft=1", "1": "m=250 ttft=1", "2": "m=300 ttft=1"},
		"no difference shown: of 1 other configuration none beats the baseline, with 200 of m; nothing was repeated": {
			"0": "m=200 ttft=1", "1": "refused: no memory", "2": "m=200 ttft=1"},
		"a=1 has 250 of m, the best of 1 single measurement, and the baseline ended refused: no memory, so no gain can be given; nothing was repeated, so a part of the gain may be luck; not every SLO is met: ttft <= 100 is missed: 150": {
			"0": "refused: no memory", "1": "m=250 ttft=150", "2": "void: lag"},
		"nothing could be measured: the baseline ended failed: no port": {
			"0": "failed: no port", "1": "failed: no port", "2": "failed: no port"},
		"no configuration has figures beside the baseline": {
			"0": "m=200 ttft=1", "1": "failed: no port", "2": "failed: no port"},
	} {
		d := drawer(t, "grid", guide, Space{Baseline: Config{"a": "0"}, Primary: "w"}, o, Budget{}, 1)
		says(t, d.Result().Verdict, "not finished: nothing is measured yet")
		p, _ := d.Ask()
		d.Tell(b.end(t, p))
		if got := d.Result(); got.Verdict.After == nil || *got.Verdict.After != 1 || len(got.Stages) != 0 {
			t.Errorf("after the baseline: %+v", got)
		}
		for p, ok := d.Ask(); ok; p, ok = d.Ask() {
			d.Tell(b.end(t, p))
		}
		r := d.Result()
		says(t, r.Verdict, want)
		if s := r.Stages[0]; len(s.Entries) != 2 || !slices.Equal(s.Trials, []int{2, 3}) || s.Entries[0].Label == "" {
			t.Errorf("%s: entries %+v", want, s)
		}
	}
}

func TestNewDrawRefuses(t *testing.T) {
	space := Space{Baseline: Config{"a": "1"}, Primary: "w", Stages: []Stage{{Name: "ignored"}}}
	guide := domain{dims: dims("a:1,2,3")}
	var many []Dimension
	for i := range 64 {
		many = append(many, Dimension{Name: fmt.Sprint(i), Values: []string{"", "1"}})
	}
	for _, c := range []struct {
		kind   string
		guide  domain
		space  Space
		o      Objective
		budget Budget
		want   string // nothing: accepted
	}{
		{"random", guide, space, up, Budget{}, ""},
		{"tpe", guide, Space{}, up, Budget{}, "the baseline sets no parameter"},
		{"tpe", guide, space, Objective{}, Budget{}, "names no metric"},
		{"tpe", guide, space, up, Budget{Trials: 1}, "give at least 2"},
		{"tpe", guide, space, up, Budget{Trials: -1}, "the budget has -1 trials"},
		{"random", domain{}, space, up, Budget{}, "no parameter to draw"},
		{"random", domain{dims: many}, space, up, Budget{}, "the search no budget"},
		{"random", domain{dims: many}, space, up, Budget{Trials: 5}, ""},
		{"grid", domain{dims: many}, space, up, Budget{Trials: 5}, "more combinations than can be numbered"},
		{"grid", domain{dims: many[:63]}, space, up, Budget{Trials: 5}, ""},
		{"grid", guide, space, Objective{Metric: "m", SLOs: []Bound{{Metric: "x", Op: ">=", Of: Plus}}}, Budget{}, "one of the baseline's"},
	} {
		_, err := drawers[c.kind](c.guide.space(), c.space, c.o, c.budget, 1)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}
