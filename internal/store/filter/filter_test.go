package filter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/store/filter"
)

var now = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

func TestClause(t *testing.T) {
	ms := func(day int) float64 { return float64(time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC).UnixMilli()) }
	figure := func(op string) string {
		return "EXISTS (SELECT 1 FROM figures x WHERE x.entry=e.n AND x.metric=(SELECT n FROM metrics WHERE name=?) AND x.value" + op + "?)"
	}
	for _, c := range []struct {
		text, sql string
		args      []any
	}{
		{"", "1=1", nil},
		{" , and ", "1=1", nil},
		{"p99_ttft <= 0.2s", figure("<="), []any{"p99_ttft_ms", 200.0}},
		{"p99_ttft_ms<200 ms", figure("<"), []any{"p99_ttft_ms", 200.0}},
		{"success_rate>=99%", figure(">="), []any{"success_rate", 0.99}},
		{"gain>5%", figure(">"), []any{"gain", 0.05}},
		{"mlperf:llama2-70b-interactive", figure("<=") + " AND " + figure("<="), []any{"p99_ttft_ms", 450.0, "p99_tpot_ms", 40.0}},
		{"engine=VLLM|none", "(lower(e.engine)=? OR lower(e.engine)=?)", []any{"vllm", ""}},
		{"model!~'a b_%'", `NOT (lower(e.model) LIKE ? ESCAPE '\')`, []any{`%a b\_\%%`}},
		{"Qwen H100", `e.search LIKE ? ESCAPE '\' AND e.search LIKE ? ESCAPE '\'`, []any{"%qwen%", "%h100%"}},
		{"simulated!=true", "e.simulated=?", []any{0}},
		{"gpus==8,gpus<9", "e.gpus=? AND e.gpus<?", []any{8.0, 9.0}},
		{"started=2026-11-01", "(e.started>=? AND e.started<?)", []any{ms(1), ms(2)}},
		{"started>2026-11-01 started<=2026-11-03", "e.started>=? AND e.started<?", []any{ms(2), ms(4)}},
		{"started<2026-11-01", "e.started<?", []any{ms(1)}},
		{"age<12h", "e.started>?", []any{ms(11)}},
		{"size>=1.5MB", "e.bytes>=?", []any{1.5e6}},
		{"duration>5m", "e.duration>?", []any{300.0}},
		{"id=cafe", `(e.id LIKE ? ESCAPE '\')`, []any{"cafe%"}},
		{"tag=keep", "(EXISTS (SELECT 1 FROM labels x WHERE x.entry=e.n AND x.kind='tag' AND lower(x.value)=?))", []any{"keep"}},
		{"tag=none", "(NOT EXISTS (SELECT 1 FROM labels x WHERE x.entry=e.n AND x.kind='tag' AND 1=1))", nil},
	} {
		f, err := filter.Parse(c.text, now)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := f.Clause()
		if got.SQL != c.sql || !slices.Equal(got.Args, c.args) {
			t.Errorf("%s:\n%s %v, want\n%s %v", c.text, got.SQL, got.Args, c.sql, c.args)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		at   int
		says string
	}{
		{"engin=vllm", 1, "did you mean engine?"},
		{"engine=vllm p99_tft<=3", 13, "did you mean p99_ttft_ms?"},
		{"ttft<=3", 1, "needs a statistic"},
		{"zzzzzz=3", 1, "zzzzzz"},
		{"kind=runn", 6, "did you mean run?"},
		{"state=gone", 7, "use running, stopped"},
		{"engine>vllm", 8, "is a text"},
		{"gpus=~8", 7, "is a number"},
		{"gpus=many", 6, "many"},
		{"gpus=NaN", 6, "NaN"},
		{"p99_ttft<=1e999", 11, "1e999"},
		{"simulated=maybe", 11, "neither true nor false"},
		{"simulated<true", 11, "true or false"},
		{"started>=yesterday", 10, "2026-11-01"},
		{"age=7d", 5, "age<7d"},
		{"age<many", 5, "no span of time"},
		{"size>1XB", 6, "no size"},
		{"engine=", 8, "has no value"},
		{"engine='vllm", 8, "not closed"},
		{"<= 3", 1, "no name before it"},
		{"a or b", 3, "there is no \"or\""},
		{"mlperf:nothing", 1, "nothing"},
		{strings.Repeat("a ", 3000), 4097, "at most 4096"},
		{strings.Repeat("a ", 65), 130, "at most 64 parts"},
	} {
		_, err := filter.Parse(c.text, now)
		e, ok := errors.AsType[*filter.Error](err)
		if !ok || e.At != c.at || !strings.Contains(e.Text, c.says) {
			t.Errorf("%.40s: %v, want character %d, %s", c.text, err, c.at, c.says)
		}
	}
	for order, says := range map[string]string{"tag": "may have several", "nonsense,a": "cannot be sorted", "-started,gpus,model,kind,name": "at most 4"} {
		if _, err := filter.ParseOrder(order); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", order, err)
		}
	}
	for _, fact := range []string{"started", "p99_ttft", "path", "nothing", "gain"} {
		if _, err := filter.GroupColumn(fact); err == nil {
			t.Errorf("a list is grouped by %s", fact)
		}
	}
}

// TestExamples: what help shows for each fact is taken.
func TestExamples(t *testing.T) {
	for _, f := range filter.Fields() {
		value := map[filter.Type]string{filter.Bool: "true", filter.Time: "2026-11-01", filter.Age: "7d", filter.Seconds: "5m", filter.Size: "10MB", filter.Number: "3"}[f.Type]
		op := "="
		switch f.Type {
		case filter.Choice:
			value = f.Values[0]
		case filter.Text:
			value = "word"
		case filter.Age:
			op = "<"
		}
		if _, err := filter.Parse(f.Name+op+value, now); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if _, err := filter.ParseOrder(f.Name); f.Sortable() != (err == nil) {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Doc == "" {
			t.Errorf("%s is not explained", f.Name)
		}
	}
}

// FuzzParse: whatever is written, SQL has nothing of it but figures' names by the metric table, and as
// many places for values as there are values.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"engine=vllm p99_ttft<=200", `model=~"a'b"`, "tag=none|x,age<7d", "started>=2026-11 size>1MB", "'; DROP TABLE entries; --", "mlperf:llama2-70b", "gain>=5 %"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := filter.Parse(text, now)
		if err != nil {
			if e, ok := errors.AsType[*filter.Error](err); !ok || e.At < 1 || e.At > len([]rune(text))+1 && e.At != 4097 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		c := p.Clause()
		if strings.Count(c.SQL, "?") != len(c.Args) {
			t.Errorf("%q: %s with %d values", text, c.SQL, len(c.Args))
		}
		if strings.Trim(c.SQL, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,()=<>?'\\ ") != "" || strings.Contains(c.SQL, "--") || strings.Contains(c.SQL, ";") {
			t.Errorf("%q: %s", text, c.SQL)
		}
		for _, a := range c.Args {
			if s, ok := a.(string); ok && strings.Contains(s, "\x00") {
				t.Errorf("%q: a NUL in %q", text, s)
			}
		}
		if order, err := filter.ParseOrder(text); err == nil {
			join, by := order.SQL()
			if strings.Count(join.SQL+by.SQL, "?") != len(join.Args)+len(by.Args) {
				t.Errorf("%q: %s %s", text, join.SQL, by.SQL)
			}
		}
	})
}
