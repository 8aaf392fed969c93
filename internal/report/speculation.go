package report

import (
	"fmt"
	"slices"

	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// addSpeculation shows what the answers of a run tell of their own requests' speculation,
// and says what the engine's counters tell, which are of all that it did meanwhile.
func addSpeculation(b *doc.Section, s *result.Summary, calls []result.Call) {
	told, ok := s.Figures["speculating_requests"]
	if !ok {
		return
	}
	k := b.Part(doc.InDocument, doc.Section{ID: "speculation", Title: "Speculation by Request", Listed: true})
	text := fmt.Sprintf("By the answers of %s out of %s successful requests, each of which tells what came of its own guesses.",
		plot.Tally(int(told)), plot.Tally(int(s.Figures["completed"])))
	m := metric("acceptance_length")
	if _, ok := value(s, m); ok {
		text += fmt.Sprintf(" The engine's own counters, of all that it did during the run, say %s a step.", quantity(s, m))
	}
	_, rated := s.Figures["request_acceptance_rate"]
	if _, stepped := s.Figures["request_acceptance_length"]; !rated && !stepped {
		text += " No guess was made for any of them."
	}
	k.Para(text)
	figures := doc.Table{Class: "few", NoHead: doc.InPage, Columns: doc.Columns("Figure", ">Value")}
	for _, name := range []string{"request_acceptance_rate", "request_acceptance_length"} {
		m := metric(name)
		v, ok := value(s, m)
		if !ok {
			continue
		}
		text := quantity(s, m)
		if m.Unit == "ratio" {
			text = share(v)
		}
		figures.Rows = append(figures.Rows, doc.Cells(doc.Cell{Text: doc.Spans(m.Label), Tip: m.Doc}, text))
	}
	k.Add(doc.InDocument, figures)
	places := doc.Table{Class: "few", Columns: doc.Columns("Position of the guess", ">Steps that accepted it", ">Of those that accepted all before it")}
	for _, p := range result.Positions(s) {
		given := missing
		if p.Asked {
			given = share(p.Given)
		}
		places.Rows = append(places.Rows, doc.Texts(fmt.Sprint(p.At), share(p.Share), given))
	}
	k.Add(doc.InDocument, places)
	groups, byRate := result.GroupSpeculation(calls)
	if len(groups) == 0 {
		return
	}
	text = "Requests by how many tokens a step of theirs yielded, and how fast they then got them."
	if byRate {
		text = "Requests by the share of their guesses that was accepted, and how fast they then got their tokens."
	}
	if s.OneIn > 1 {
		text += fmt.Sprintf(" One call in %d is here, as not every call of so long a run is kept.", s.OneIn)
	}
	k.Para(text)
	k.Add(doc.InDocument, groupTable(groups, byRate))
}

// groupTable has a row for each group of requests.
func groupTable(groups []result.SpeculationGroup, byRate bool) doc.Table {
	heads := []string{"Each request's own", ">Requests", ">Acceptance length", ">Acceptance rate", ">Mean TPOT (ms)"}
	if byRate {
		heads = slices.Delete(heads, 2, 3)
	}
	t := doc.Table{Columns: doc.Columns(heads...)}
	for _, g := range groups {
		rate, tpot := missing, missing
		if g.Rated {
			rate = share(g.Rate)
		}
		if g.Timed > 0 {
			tpot = fmt.Sprintf("%.2f", g.TPOT)
		}
		if byRate {
			t.Rows = append(t.Rows, doc.Texts(share(g.Low)+" to "+share(g.High), plot.Tally(g.Requests), rate, tpot))
		} else {
			t.Rows = append(t.Rows, doc.Texts(fmt.Sprintf("%.2f to %.2f tokens", g.Low, g.High), plot.Tally(g.Requests), fmt.Sprintf("%.2f", g.Length), rate, tpot))
		}
	}
	return t
}
