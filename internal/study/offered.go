package study

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/bench"
)

// boundByRate are figures that a load with a rate bounds: who keeps up with the rate has them,
// and nobody can have better ones. Those of a steady window and of a GPU are bounded as well.
var boundByRate = []string{
	"request_throughput", "output_throughput", "total_token_throughput", "request_goodput", "duration",
	"cost_per_million_tokens", "cost_per_million_output_tokens",
}

// Offer is a workload whose rate bounds the objective.
type Offer struct {
	Workload string
	Rate     float64 // requests/s that are due
}

// Text is the offer for a reader: "10 requests/s of workload chat".
func (o Offer) Text() string {
	return fmt.Sprintf("%.4g requests/s of workload %s", o.Rate, o.Workload)
}

// Offers are the workloads that the search is judged by, where the rate of each bounds the
// objective: then only configurations that fall behind differ in it. There are none where one of
// them does not bound it, and where nothing is compared.
func (s *Study) Offers() []Offer {
	if s.offers == nil {
		out := s.findOffers()
		s.offers = &out
	}
	return *s.offers
}

func (s *Study) findOffers() []Offer {
	base := strings.TrimPrefix(strings.TrimSuffix(s.Metric.Name, "_per_gpu"), "steady_")
	if !slices.Contains(boundByRate, base) || s.Attached() {
		return nil
	}
	var out []Offer
	for i, w := range s.Workloads {
		if i > 0 && !(s.Objective.Weights[w.Name] > 0) {
			continue
		}
		rate := s.offered(w)
		if rate <= 0 {
			return nil
		}
		out = append(out, Offer{w.Name, rate})
	}
	return out
}

// offered is the rate of a workload, 0 where it has none of its own: all requests at once, a
// search that sets it, conversations whose turns wait for answers, a dataset that cannot be opened.
func (s *Study) offered(w Workload) float64 {
	if w.FindMax != nil {
		return 0
	}
	opened, _, err := bench.OpenWorkload(s.WorkloadSpec(w.Name, 0))
	if err != nil || opened.Conversations() {
		return 0
	}
	return opened.Offered()
}
