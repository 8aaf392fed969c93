package storetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/mark"
	"perflab/internal/store/scan"
)

// Opener opens an empty index over roots; opened again for the same test it is the one of before.
type Opener func(t *testing.T, roots ...string) *store.Store

// Suite holds an index against what package store promises. fresh gives, for each test, what opens
// an index of its own.
func Suite(t *testing.T, fresh func(t *testing.T) Opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"List", testList}, {"Filter", testFilter}, {"Order", testOrder}, {"Page", testPage}, {"Groups", testGroups},
		{"Follow", testFollow}, {"Places", testPlaces}, {"Marks", testMarks}, {"Get", testGet}, {"Parts", testParts},
		{"Hostile", testHostile}, {"Rebuild", testRebuild}, {"Wait", testWait}, {"Two", testTwo}, {"Trash", testTrash}, {"Reduction", testReduction},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

// Sync follows the directories and fails the test where that fails.
func Sync(t testing.TB, s *store.Store) store.Changes {
	t.Helper()
	c, err := s.Sync(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// List is a page, and fails the test where there is none.
func List(t testing.TB, s *store.Store, q store.Query) store.Page {
	t.Helper()
	if q.Now.IsZero() {
		q.Now = Began.AddDate(0, 0, 10)
	}
	p, err := s.List(context.Background(), q)
	if err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	return p
}

// Names are what the entries of a page are called.
func Names(p store.Page) []string {
	out := []string{}
	for _, e := range p.Entries {
		out = append(out, e.Called())
	}
	return out
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// some are runs whose facts differ.
func some(t *testing.T) string {
	root := t.TempDir()
	Run{N: 0, Command: "vllm serve Qwen/Qwen3-8B -tp 2", Build: "abc1234"}.Write(t, root, "a")
	Run{N: 1, Model: "meta-llama/Llama-3-70B", Command: "python3 -m sglang.launch_server --model-path meta-llama/Llama-3-70B"}.Write(t, root, "b")
	Run{N: 2, Simulated: true}.Write(t, root, "c")
	Run{N: 3, Status: result.Voided}.Write(t, root, "deep/er/d")
	return root
}

func testList(t *testing.T, open Opener) {
	s := open(t, some(t))
	if c := Sync(t, s); c.Places != 4 || len(c.Added) != 4 || len(c.Changed)+len(c.Removed)+c.Faults > 0 {
		t.Errorf("changes %+v", c)
	}
	if c := Sync(t, s); c.Any() {
		t.Errorf("nothing changed, and there is %+v", c)
	}
	p := List(t, s, store.Query{Figures: []string{"p99_ttft"}})
	want(t, Names(p), "d", "c", "b", "a")
	if p.Total != 4 {
		t.Errorf("total %d", p.Total)
	}
	e := p.Entries[3]
	f, ok := e.Figure("p99_ttft_ms")
	if !ok || f.Value != 50 || f.Low == nil || *f.Low != 45 || *f.High != 59 || len(e.Figures) != 1 {
		t.Errorf("figures %+v", e.Figures)
	}
	if e.Kind != scan.Run || e.State != scan.Finished || e.Engine != "vllm" || e.Build != "abc1234" || e.GPUs != 1 || e.Verdict != "sound" || !e.Known || !e.Started.Equal(Began) {
		t.Errorf("facts %+v", e.Facts)
	}
	if e.Dir() != filepath.Join(e.Places[0].Root, "a") {
		t.Errorf("it lies in %s", e.Dir())
	}
	if v := p.Entries[0]; v.Verdict != "void" || len(v.Reasons) != 1 {
		t.Errorf("verdict %s %q", v.Verdict, v.Reasons)
	}
}

func testFilter(t *testing.T, open Opener) {
	root := some(t)
	Study(t, root, "s", 30, 1)
	s := open(t, root)
	Sync(t, s)
	for filter, names := range map[string][]string{
		"engine=vllm kind=run parent=none":               {"a"},
		"engine=VLLM|sglang, parent=none":                {"s", "b", "a"},
		"model=~llama":                                   {"b"},
		"kind=run and model!~qwen":                       {"b"},
		"simulated=true":                                 {"c"},
		"verdict=void":                                   {"d"},
		"verdict=confirmed":                              {"s"},
		"p99_ttft <= 60, kind=run, parent=none":          {"a"},
		"p99_ttft_ms<0.06s parent=none kind!=study":      {"a"},
		"p99_ttft>100":                                   {"d"},
		"p99_ttft_ms > 1e9":                              {},
		"gain >= 25%":                                    {"s"},
		"gpus>=3 parent=none kind=run":                   {"d", "c"},
		"started>=2026-11-01T12:02 kind=run parent=none": {"d", "c"},
		"started=2026-11-02":                             {"s"},
		"age>9d parent=none":                             {"d", "c", "b", "a"},
		"path=~deep":                                     {"d"},
		"llama sglang":                                   {"b"},
		"build=abc1234":                                  {"a"},
		"commit_that_is_nowhere":                         {},
		"parent!=none":                                   {"chat"},
		`"100%"`:                                         {},
		"name=_":                                         {},
		"tag=keep":                                       {},
		"tag!=keep parent=none kind=study":               {"s"},
		"tag=none kind=study":                            {"s"},
	} {
		p := List(t, s, store.Query{Filter: filter})
		if !slices.Equal(Names(p), names) {
			t.Errorf("%s: %q, want %q", filter, Names(p), names)
		}
		if p.Total != len(names) {
			t.Errorf("%s: total %d", filter, p.Total)
		}
	}
}

func testOrder(t *testing.T, open Opener) {
	root := some(t)
	Run{N: 4, Figures: map[string]float64{"mean_itl_ms": 3}}.Write(t, root, "e")
	Run{N: 5, Figures: map[string]float64{"mean_itl_ms": 9}}.Write(t, root, "f")
	s := open(t, root)
	Sync(t, s)
	for order, names := range map[string][]string{
		"p99_ttft":           {"a", "b", "c", "d", "e", "f"},
		"-p99_ttft":          {"f", "e", "d", "c", "b", "a"},
		"mean_itl,started":   {"e", "f", "a", "b", "c", "d"},
		"-mean_itl,-started": {"f", "e", "d", "c", "b", "a"},
		"model,name":         {"b", "a", "c", "d", "e", "f"},
		"verdict,-started":   {"f", "e", "c", "b", "a", "d"},
		"age":                {"f", "e", "d", "c", "b", "a"},
		"build,name":         {"a", "b", "c", "d", "e", "f"},
	} {
		if got := Names(List(t, s, store.Query{Order: order})); !slices.Equal(got, names) {
			t.Errorf("%s: %q, want %q", order, got, names)
		}
	}
}

func testPage(t *testing.T, open Opener) {
	root := t.TempDir()
	for i := range 7 {
		Run{N: i}.Write(t, root, string(rune('a'+i)))
	}
	s := open(t, root)
	Sync(t, s)
	p := List(t, s, store.Query{Order: "started", Limit: 3, Offset: 3})
	want(t, Names(p), "d", "e", "f")
	if p.Total != 7 {
		t.Errorf("total %d", p.Total)
	}
	want(t, Names(List(t, s, store.Query{Offset: 70})))
}

func testGroups(t *testing.T, open Opener) {
	s := open(t, some(t))
	Sync(t, s)
	for name, tags := range map[string][]string{"a": {"keep", "nightly"}, "b": {"keep"}} {
		for _, tag := range tags {
			if err := s.Mark(context.Background(), "ada", byName(t, s, name).ID, Tagged(tag)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for fact, counts := range map[string][]store.Group{
		"tag":       {{Value: "keep", Count: 2}, {Value: "nightly", Count: 1}},
		"engine":    {{Value: "", Count: 2}, {Value: "sglang", Count: 1}, {Value: "vllm", Count: 1}},
		"simulated": {{Value: "false", Count: 3}, {Value: "true", Count: 1}},
		"verdict":   {{Value: "sound", Count: 3}, {Value: "void", Count: 1}},
	} {
		got, err := s.Groups(context.Background(), store.Query{}, fact)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 && got[0].Newest.IsZero() {
			t.Errorf("%s: %+v", fact, got)
		}
		for i := range got {
			got[i].Newest = time.Time{}
		}
		if !slices.Equal(got, counts) {
			t.Errorf("%s: %+v, want %+v", fact, got, counts)
		}
	}
	testCounts(t, s)
}

// testCounts: several facts counted at once are what each is by itself.
func testCounts(t *testing.T, s *store.Store) {
	facts := []string{"engine", "simulated", "verdict", "model", "config"}
	all, err := s.Counts(context.Background(), store.Query{Filter: "verdict=sound"}, facts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range facts {
		one, err := s.Groups(context.Background(), store.Query{Filter: "verdict=sound"}, fact)
		if err != nil || !slices.Equal(all[fact], one) {
			t.Errorf("%s: %+v, want %+v (%v)", fact, all[fact], one, err)
		}
	}
	for _, fact := range []string{"tag", "started", "nothing"} {
		if _, err := s.Counts(context.Background(), store.Query{}, fact); err == nil {
			t.Errorf("%s is counted with others", fact)
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// byName is the entry of a name.
func byName(t *testing.T, s *store.Store, name string) store.Entry {
	t.Helper()
	for _, e := range List(t, s, store.Query{Figures: []string{"*"}}).Entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("there is no %s", name)
	return store.Entry{}
}

// Tagged is the record of a tag.
func Tagged(tag string) mark.Record { return mark.Record{Do: mark.Tag, Value: tag} }
