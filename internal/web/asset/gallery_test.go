package asset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/web/figure"
)

// gallery is a server whose pages have all that the assets know, as the pages of the real one use
// it.
type gallery struct {
	*httptest.Server
	events chan string // what the page's stream says next; closed: the stream breaks
	asked  atomic.Int64
	drawn  atomic.Int64 // figures from a URL
	last   atomic.Value // last_event_id of the newest stream

	turn sync.Mutex    // streams come one after the other
	quit chan struct{} // ends the newest stream
	gone chan struct{} // it has ended
}

type galleryRun struct{ ID, Title, Verdict, TTFT, Output, Age string }

type galleryFigure struct {
	Title, Plain string
	JSON         template.JS
}

type galleryPage struct {
	Name, Title, Hostile, Command string
	Runs                          []galleryRun
	Figures                       []galleryFigure
	Times                         int64
	Stale                         string // seconds
}

const hostile = `</script><script>alert(1)</script>"'&<img src=x onerror=alert(2)>`

func openGallery(t *testing.T) *gallery {
	t.Helper()
	pages, err := template.New("").Funcs(template.FuncMap{"asset": Path}).ParseFiles("testdata/gallery.html")
	if err != nil {
		t.Fatal(err)
	}
	g := &gallery{events: make(chan string, 100)} // more than a test says
	g.last.Store("")
	mux := http.NewServeMux()
	page := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			data := g.page(t, name)
			data.Stale = cmp.Or(r.FormValue("stale"), "600")
			if err := pages.ExecuteTemplate(&b, name, data); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", Policy)
			_, _ = b.WriteTo(w)
		}
	}
	mux.HandleFunc("/{$}", page("list"))
	mux.HandleFunc("/figures", page("figures"))
	mux.HandleFunc("/editor", page("editor"))
	mux.HandleFunc("/live", page("live"))
	mux.HandleFunc("/runs/{id}", page("figures"))
	mux.HandleFunc("/compare", page("figures"))
	mux.Handle(Root, Handler())
	mux.HandleFunc("/figure.json", func(w http.ResponseWriter, _ *http.Request) {
		text, err := cdfFigure("from-url", fmt.Sprintf("TTFT, drawn %d times", g.drawn.Add(1))).JSON()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(text)
	})
	mux.HandleFunc("/api/v1/search", search)
	mux.HandleFunc("POST /api/v1/studies/check", check)
	mux.HandleFunc("POST /api/v1/studies/complete", complete)
	mux.HandleFunc("/events", g.stream)
	g.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

func search(w http.ResponseWriter, r *http.Request) {
	_ = json.NewEncoder(w).Encode([]map[string]string{
		{"title": "run of " + r.FormValue("q") + " " + hostile, "kind": "run", "href": "/runs/7"},
		{"title": "elsewhere", "kind": "run", "href": "https://192.0.2.1/"},
	})
}

func check(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	_, _ = b.ReadFrom(r.Body)
	wrong := []map[string]any{}
	for i, line := range strings.Split(b.String(), "\n") {
		if strings.Contains(line, "hope") {
			wrong = append(wrong, map[string]any{"line": i + 1, "column": 11, "path": "$.strategy", "message": "there is no strategy hope", "hint": "race, staged, grid " + hostile})
		}
	}
	_ = json.NewEncoder(w).Encode(wrong)
}

func complete(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("line") != "2" {
		_, _ = w.Write([]byte("[]"))
		return
	}
	_ = json.NewEncoder(w).Encode([]map[string]string{{"text": "race", "detail": "few launches to the best"}, {"text": "staged", "detail": "column " + r.FormValue("column")}})
}

// stream ends the stream before it, which could otherwise take what is said for a page that has left.
func (g *gallery) stream(w http.ResponseWriter, r *http.Request) {
	g.turn.Lock()
	if g.quit != nil {
		close(g.quit)
		<-g.gone
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	g.quit, g.gone = quit, gone
	g.turn.Unlock()
	defer close(gone)
	g.last.Store(r.FormValue("last_event_id"))
	g.asked.Add(1)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": hello\n\n")
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-quit:
			return
		case text := <-g.events:
			if text == "" { // the stream breaks
				return
			}
			fmt.Fprint(w, text+"\n\n")
			w.(http.Flusher).Flush()
		}
	}
}

func (g *gallery) page(t *testing.T, name string) galleryPage {
	t.Helper()
	p := galleryPage{Name: name, Title: "Gallery", Hostile: hostile, Command: "vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --speculative-config '{\"method\":\"" + strings.Repeat("long", 40) + "\"}'", Times: g.asked.Load()}
	for i := range 40 {
		p.Runs = append(p.Runs, galleryRun{fmt.Sprint(i), fmt.Sprintf("Qwen3-8B on H100, %d req/s", i), []string{"sound", "noted", "void"}[i%3], fmt.Sprintf("%.1f", 100+10.7*float64(i)), fmt.Sprint(1000 + 37*i), fmt.Sprintf("%d d", i)})
	}
	p.Runs[3].Title = "=HYPERLINK(1) " + hostile
	for _, f := range galleryFigures() {
		text, err := f.JSON()
		if err != nil {
			t.Error(err)
		}
		p.Figures = append(p.Figures, galleryFigure{f.Title, "What it shows, in words: " + f.Title, template.JS(text)})
	}
	return p
}

// quantiles of a distribution with a long tail.
func quantiles(middle, spread float64) []figure.Number {
	all := make([]float64, 512)
	for i := range all {
		p := (float64(i) + 0.5) / 512
		all[i] = middle * math.Exp(spread*math.Log(p/(1-p)))
	}
	return figure.Numbers(all)
}

func cdfFigure(name, title string) figure.Figure {
	return figure.Figure{Name: name, Title: title, Simulated: true, Caption: "Cumulative over the calls of all launches.", CDF: &figure.CDF{
		X:     figure.Axis{Label: "TTFT", Unit: "ms", Log: true},
		Sides: []figure.Side{{Name: "baseline", Values: quantiles(40, 0.5), Calls: 2000}, {Name: "FP8 " + hostile, Values: quantiles(31, 0.4)}, {Name: "three calls", Values: []figure.Number{20, 35, 90}, Shares: []figure.Number{0.33, 0.67, 1}}},
		SLOs:  []figure.Mark{{At: 200, Label: "p99 <= 200 ms"}},
	}}
}

func galleryFigures() []figure.Figure {
	return []figure.Figure{cdfFigure("ttft", "TTFT"), timeFigure("rate", true), timeFigure("queue", false), historyFigure(), paretoFigure(),
		{Name: "nothing", Title: "Without data", Time: &figure.Time{Axes: []figure.Axis{{Label: "Tokens", Unit: "tok/s"}}}}}
}

func timeFigure(name string, two bool) figure.Figure {
	var seconds, tokens, running []figure.Number
	for i := range 600 {
		s := float64(i)
		v := figure.Number(2400 * (1 - math.Exp(-s/20)) * (1 + 0.08*math.Sin(s/7)))
		if i > 300 && i < 330 {
			v = figure.Missing
		}
		seconds, tokens, running = append(seconds, figure.Number(s)), append(tokens, v), append(running, figure.Number(math.Round(64*(1-math.Exp(-s/15)))))
	}
	f := figure.Time{
		Clock: "run-1", Axes: []figure.Axis{{Label: "Output", Unit: "tok/s"}},
		Series: []figure.Line{{Name: "output", Seconds: seconds, Values: tokens}},
		Spans:  []figure.Span{{From: 60, To: 540, Label: "steady"}},
		Marks:  []figure.Mark{{At: 301, Label: "metrics lost"}},
	}
	if two {
		f.Axes = append(f.Axes, figure.Axis{Label: "Requests"})
		f.Series = append(f.Series, figure.Line{Name: "running", Axis: 1, Seconds: seconds[:500], Values: running[:500], Step: true})
		f.Limits = []figure.Limit{{Axis: 1, At: 70, Label: "max-num-seqs 70"}}
	}
	return figure.Figure{Name: name, Title: "Output over time, " + name, Time: &f}
}

func historyFigure() figure.Figure {
	day := time.Date(2026, 2, 1, 3, 0, 0, 0, time.UTC)
	h := figure.History{Y: figure.Axis{Label: "P99 TTFT", Unit: "ms"}, Better: "lower"}
	for i := range 40 {
		v := 131 + 3*math.Sin(float64(i)*1.7)
		if i >= 24 {
			v -= 12
		}
		b := figure.Build{At: day.AddDate(0, 0, i), Value: figure.Number(v), Low: figure.Number(v - 3), High: figure.Number(v + 4), Launches: 3, Label: fmt.Sprintf("build %d", i), Href: fmt.Sprintf("/runs/%d", i), Verdict: figure.Sound}
		switch i {
		case 9:
			b.Value, b.Low, b.High = figure.Missing, figure.Missing, figure.Missing
		case 15:
			b.Verdict = figure.Void
		}
		h.Points = append(h.Points, b)
	}
	h.Noise = []figure.Band{{From: day, To: day.AddDate(0, 0, 24), Low: 126, Middle: 131, High: 136}, {From: day.AddDate(0, 0, 24), To: day.AddDate(0, 0, 39), Low: 114, Middle: 119, High: 124}}
	h.Changes = []figure.Change{{At: day.AddDate(0, 0, 24), Kind: figure.Gain, Label: "-9.1 % [-10.2, -8.0]", Href: "/runs/24"}}
	h.Notes = []figure.Note{{At: day.AddDate(0, 0, 12), Text: "driver 580 " + hostile}}
	return figure.Figure{Name: "history", Title: "P99 TTFT of the nightly build", History: &h}
}

func paretoFigure() figure.Figure {
	p := figure.Pareto{
		Measures: []figure.Measure{
			{Name: "user", Label: "Tokens per second per user", Unit: "tok/s", Better: "higher", ByStat: true},
			{Name: "gpu", Label: "Throughput per GPU", Unit: "tok/s", Better: "higher"},
			{Name: "ttft", Label: "TTFT", Unit: "ms", Better: "lower", ByStat: true},
		},
		Stats: []string{"p50", "p99"}, Stat: "p50", X: "user", Y: "gpu",
	}
	for k, name := range []string{"H100 vLLM", "H100 SGLang", "H200 vLLM"} {
		f := figure.Front{Name: name, Group: strings.Fields(name)[0]}
		for i := range 9 {
			load := math.Pow(2, float64(i))
			user, gpu := 140/(1+load/60)-4*float64(k), 90*load/(1+load/70)*(1+0.15*float64(k))
			if i == 6 && k == 0 {
				gpu *= 0.6 // dominated
			}
			l := figure.Launch{Label: fmt.Sprintf("%d in flight", int(load)), Href: fmt.Sprintf("/runs/%d", i), Figures: map[string]figure.Range{
				"p50 user": {Value: figure.Number(user), Low: figure.Number(user * 0.97), High: figure.Number(user * 1.02)},
				"p99 user": {Value: figure.Number(user * 0.8), Low: figure.Missing, High: figure.Missing},
				"gpu":      {Value: figure.Number(gpu), Low: figure.Number(gpu * 0.95), High: figure.Number(gpu * 1.04)},
				"p50 ttft": {Value: figure.Number(20 + load), Low: figure.Missing, High: figure.Missing},
			}}
			if i == 8 && k == 1 {
				l.Verdict = figure.Void
			}
			f.Launches = append(f.Launches, l)
		}
		p.Fronts = append(p.Fronts, f)
	}
	return figure.Figure{Name: "front", Title: "Throughput per GPU against speed for one user", Pareto: &p}
}
