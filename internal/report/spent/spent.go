// Package spent shows where the slowest calls spent their time, client and engine on one line, by
// the spans that the engine exported for them.
//
//	spent.Add(&d, header, calls, every, engine, "engine-spans.jsonl")
//
// Invariants: the package is pure; a time that the engine does not tell is shown as missing; calls
// whose spans contradict what the client saw are left out, and counted.
package spent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/trace"
)

// ID is of the section, Title what stands above it.
const (
	ID    = "spent"
	Title = "Where Slow Calls Spent Their Time"
)

// row is a call with its parts.
type row struct {
	call  *result.Call
	parts trace.Parts
	times trace.Times
}

// most is how many calls are shown.
const most = 20

// Add adds the section to the document of a run. calls are one in every so many; engine is what the
// spans in the file say, by trace.
func Add(d *doc.Document, h result.Header, calls []result.Call, every int, engine map[string]trace.Times, file string) {
	k := d.Body.PartAfter("plots", doc.Everywhere, doc.Section{ID: ID, Title: Title, Page: "Where slow calls spent their time", Listed: true})
	rows, foreign := split(calls, engine)
	k.Text("", Title)
	for _, s := range sentences(rows, calls, engine, foreign, every, file) {
		k.Text(s)
		k.Para(s)
	}
	if len(rows) == 0 {
		return
	}
	sim := h.Simulated || slices.ContainsFunc(rows, func(r row) bool { return r.times.Simulated || r.call.Sim })
	shown := rows[:min(most, len(rows))]
	k.Figures(doc.InPage, func() []plot.Plot { return []plot.Plot{draw(shown, len(rows), sim)} })
	k.Add(doc.Everywhere, table(shown))
}

// split takes the calls apart that the engine has spans of, the slowest first. foreign are those
// whose spans cannot be of them.
func split(calls []result.Call, engine map[string]trace.Times) (rows []row, foreign int) {
	for i := range calls {
		c := &calls[i]
		t, ok := engine[c.TraceID]
		if !ok || !c.OK() || len(c.Chunks) == 0 {
			continue
		}
		p, ok := trace.Split(c, t)
		if !ok {
			foreign++
			continue
		}
		rows = append(rows, row{c, p, t})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.parts.Lasted(), a.parts.Lasted()), cmp.Compare(a.call.Index, b.call.Index))
	})
	return rows, foreign
}

// sentences say of which calls there are spans, and whose.
func sentences(rows []row, calls []result.Call, engine map[string]trace.Times, foreign, every int, file string) []string {
	if !slices.ContainsFunc(calls, func(c result.Call) bool { return c.TraceID != "" }) {
		return []string{"The calls carried no trace context, so that no span of " + file + " can be told to be of one: make the run with --traceparent."}
	}
	if len(engine) == 0 {
		return []string{"No span of " + file + " tells a time of a call of this run."}
	}
	var services []string
	for _, t := range engine {
		name := cmp.Or(t.Service, "an engine without a name")
		if t.Simulated {
			name += " (SIMULATED)"
		}
		if !slices.Contains(services, name) {
			services = append(services, name)
		}
	}
	slices.Sort(services)
	of := "calls"
	if every > 1 {
		of = fmt.Sprintf("calls (one in %s of the run)", plot.Tally(every))
	}
	out := []string{fmt.Sprintf("%s of %s %s have spans of %s in %s.", plot.Tally(len(rows)+foreign), plot.Tally(len(calls)), of, strings.Join(services, ", "), file)}
	if foreign > 0 {
		out = append(out, fmt.Sprintf("Of %s of them the engine claims more time before the first token than the client waited for it. They are left out.", plot.Tally(foreign)))
	}
	if len(rows) > 0 {
		out = append(out, "Between is the time before the first token in which a request was neither in the engine's queue nor in its prefill: network, the server's front end, and the way back. Tokens is from first to last as the client saw it, Decode the same as the engine saw it.")
	}
	return out
}

// columns are the times of a row, with their names and where they are drawn.
var columns = [...]struct {
	name, class string // no class: not drawn
	of          func(trace.Parts) trace.Took
}{
	{"Client queue", "s9", func(p trace.Parts) trace.Took { return known(p.Client) }},
	{"Connect", "s4", func(p trace.Parts) trace.Took { return known(p.Connect) }},
	{"Between", "s8", func(p trace.Parts) trace.Took { return known(p.Between) }},
	{"Engine queue", "s1", func(p trace.Parts) trace.Took { return p.Queue }},
	{"Engine prefill", "s2", func(p trace.Parts) trace.Took { return p.Prefill }},
	{"Tokens", "s0", func(p trace.Parts) trace.Took { return known(p.Stream) }},
	{"Decode", "", func(p trace.Parts) trace.Took { return p.Decode }},
}

func known(d time.Duration) trace.Took { return trace.Took{Duration: d, Known: true} }

// table has a row for each call, times in milliseconds.
func table(rows []row) doc.Table {
	heads := []string{">Call", ">All (ms)"}
	for _, c := range columns {
		heads = append(heads, ">"+c.name)
	}
	t := doc.Table{Columns: doc.Columns(append(heads, "Trace")...)}
	for _, r := range rows {
		cells := []string{strconv.Itoa(r.call.Index), ms(r.parts.Lasted())}
		for _, c := range columns {
			text := doc.None
			if d := c.of(r.parts); d.Known {
				text = ms(d.Duration)
			}
			cells = append(cells, text)
		}
		t.Rows = append(t.Rows, doc.Texts(append(cells, r.call.TraceID)...))
	}
	return t
}

func ms(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) }

// draw draws the bars of calls.
func draw(rows []row, of int, sim bool) plot.Plot {
	title := fmt.Sprintf("The %d slowest of %s calls with spans, from due to last token", len(rows), plot.Tally(of))
	return plot.Sized("spent", title, sim, func(c *plot.Canvas) { bars(c, rows) })
}

func bars(c *plot.Canvas, rows []row) {
	const height = 19
	var classes, names []string
	for _, k := range columns {
		if k.class != "" {
			classes, names = append(classes, k.class), append(names, k.name)
		}
	}
	top := 50 + c.Legend(16, 50, classes, names)
	c.H = top + 6 + height*float64(len(rows)) + 46
	x := plot.Linear(float64(rows[0].parts.Lasted())/1e6, c.Few(8)).Milliseconds()
	none := plot.Axis{Label: func(float64) string { return "" }}
	f := c.Field(c.Pick(90, 56), top, c.W-c.Pick(80, 64), c.H-46, x, none, "time since the call was due", "")
	for i, r := range rows {
		y := f.Top + height*float64(i) + 3
		c.Text("m", f.Left-8, y+11, "end", fmt.Sprintf("#%d", r.call.Index))
		told := tip(r)
		var from time.Duration
		for _, k := range columns {
			d := k.of(r.parts).Duration
			if k.class == "" || d <= 0 {
				continue
			}
			left, right := f.X.At(float64(from)/1e6), f.X.At(float64(from+d)/1e6)
			c.Rect(k.class, left, y, right-left, height-6, told)
			from += d
		}
		c.Text("m", f.X.At(float64(from)/1e6)+6, y+11, "start", plot.Milli(float64(from)/1e6))
	}
}

// tip says all times of a call.
func tip(r row) string {
	var told []string
	for _, k := range columns {
		if d := k.of(r.parts); d.Known && d.Duration > 0 {
			told = append(told, k.name+" "+plot.Milli(float64(d.Duration)/1e6))
		}
	}
	return strings.Join(told, ", ")
}
