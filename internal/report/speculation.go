package report

import (
	"fmt"

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
	text := fmt.Sprintf("By the answers of %s out of %s successful requests, each of which tells what came of its own guesses", plot.Tally(int(told)), plot.Tally(int(s.Figures["completed"])))
	length := metric("request_acceptance_length")
	_, stepped := value(s, length)
	rate, rated := value(s, metric("request_acceptance_rate"))
	if stepped {
		text += fmt.Sprintf(", a step yields %s", quantity(s, length))
	}
	if rated {
		text += fmt.Sprintf(", %s of the guesses accepted", share(rate))
	} else if !stepped {
		text += ", none was made"
	}
	if m := metric("acceptance_length"); s.Figures[m.Name] > 0 {
		text += fmt.Sprintf(". The engine's own counters, of all that it did during the run, say %s a step", quantity(s, m))
	}
	k.Para(text + ".")
	places := doc.Table{Class: "few", Columns: doc.Columns("Position of the guess", ">Steps that accepted it", ">Of those that accepted all before it")}
	for _, p := range result.Positions(s) {
		places.Rows = append(places.Rows, doc.Texts(fmt.Sprint(p.At), share(p.Share), orMissing(share(p.Given), p.Asked)))
	}
	k.Add(doc.InDocument, places)
	groups, byRate := result.GroupSpeculation(calls)
	if len(groups) == 0 {
		return
	}
	k.Para("Requests by what speculation yielded for each, and how fast they then got their tokens.")
	if s.OneIn > 1 {
		k.Para(fmt.Sprintf("One call in %d is here, as not every call of so long a run is kept.", s.OneIn))
	}
	t := doc.Table{Columns: doc.Columns("Each request's own", ">Requests", ">Tokens a step", ">Guesses accepted", ">Mean TPOT (ms)")}
	for _, g := range groups {
		span := fmt.Sprintf("%.2f to %.2f tokens a step", g.Low, g.High)
		if byRate {
			span = share(g.Low) + " to " + share(g.High) + " of its guesses"
		}
		t.Rows = append(t.Rows, doc.Texts(span, plot.Tally(g.Requests), orMissing(fmt.Sprintf("%.2f", g.Length), !byRate), orMissing(share(g.Rate), g.Rated), orMissing(fmt.Sprintf("%.2f", g.TPOT), g.Timed > 0)))
	}
	k.Add(doc.InDocument, t)
}

func orMissing(text string, ok bool) string {
	if !ok {
		return missing
	}
	return text
}
