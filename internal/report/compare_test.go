package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"perflab/internal/compare"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/verdict"
)

// comparedRuns are two runs of a steady load, the second with slower first
// tokens, and one whose figures alone are known, by another definition.
func comparedRuns(t *testing.T) (compare.Comparison, []compare.Ruling) {
	t.Helper()
	var sides []compare.Side
	for i, name := range []string{"before", "after", "theirs"} {
		h := result.Header{Started: time.Date(2026, 11, 20, 8, 30*i, 0, 0, time.UTC), Model: "m", Workload: "random", Rate: 10, Command: "vllm serve m", Fingerprint: "a1b2", Cache: "unique", Requests: 400}
		var calls []result.Call
		for k := range 400 {
			at := time.Duration(k) * 100 * time.Millisecond
			c := result.Call{Index: k, Due: at, Ready: at, Sent: at, Usage: &result.Usage{Prompt: 100, Completion: 4}}
			wobble := time.Duration(k*7919%41+k*104729%13) * 300 * time.Microsecond
			next := at + 30*time.Millisecond + time.Duration(i)*8*time.Millisecond + wobble
			for j := range 4 {
				c.Chunks = append(c.Chunks, result.Chunk{At: next, Tokens: 1, Read: int32(j)})
				next += 10*time.Millisecond + wobble/10
			}
			c.End = c.Chunks[3].At
			calls = append(calls, c)
		}
		s, err := verdict.Summarize(h, &result.Client{}, result.Options{}, func(yield func(result.Call) bool) {
			for _, c := range calls {
				if !yield(c) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		m := compare.Run{Name: name, Header: h, Summary: s, Calls: calls}
		if i == 2 {
			m.Calls, m.Summary.Definitions = nil, map[string]result.Definition{"ttft": result.FirstMessage}
			m.Header.Started = time.Time{}
			m.Header.Imported = &result.Imported{Client: "vllm bench serve"}
		}
		sides = append(sides, compare.Side{Name: name, Runs: []compare.Run{m}})
	}
	c, err := compare.New(sides, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var conditions []compare.Condition
	for _, text := range []string{"mean_ttft > 1.05x", "output_throughput < 0.95x"} {
		k, err := compare.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, k)
	}
	return c, c.Rule(conditions)
}

func TestCompareGolden(t *testing.T) {
	c, rulings := comparedRuns(t)
	golden(t, "compare.txt", func(w io.Writer) error { return doc.Text(w, Compare(c, rulings)) })
	golden(t, "compare.md", func(w io.Writer) error { return doc.Markdown(w, Compare(c, rulings)) })
	golden(t, "compare.html", func(w io.Writer) error { return doc.HTML(w, Compare(c, rulings)) })
	golden(t, "compare.xml", func(w io.Writer) error { return JUnit(w, c, rulings) })
}

// The parts of a comparison that come from elsewhere are escaped.
func TestCompareEscapes(t *testing.T) {
	c, rulings := comparedRuns(t)
	c.Sides[1].Name = `<b>&"|`
	d := Compare(c, rulings)
	for name, write := range map[string]func(io.Writer) error{
		"html": func(w io.Writer) error { return doc.HTML(w, d) }, "md": func(w io.Writer) error { return doc.Markdown(w, d) },
		"xml": func(w io.Writer) error { return JUnit(w, c, rulings) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Split(b.String(), "<details")[0], "<b>&") {
			t.Errorf("%s is not escaped", name)
		}
		if name == "xml" {
			if err := xml.Unmarshal(b.Bytes(), new(junitSuite)); err != nil {
				t.Error(err)
			}
		}
	}
}
