package outline

import "perflab/internal/sim"

// Means are the mean lengths of the requests of the first sessions of a workload, as many as it takes to have so many
// requests; there is no end to some workloads.
func (p *Pass) Means(requests int) (input, output float64) {
	n := 0
	count := func(j sim.Job) {
		n++
		input, output = input+float64(max(j.PromptLen, len(j.Prompt))), output+float64(j.Output)
	}
	sessions := p.Options(sim.ReplayOptions{}, 1).Sessions
	for first := range p.Jobs() {
		all := []sim.Job{first}
		if sessions != nil {
			all = append(all, sessions.Begin(first, 0)...)
		}
		for ; len(all) > 0; all = all[1:] {
			count(all[0])
			if sessions != nil {
				all = append(all, sessions.Ended(all[0].Session, all[0].Turn, 0, true)...)
			}
		}
		if n >= requests {
			break
		}
	}
	return input / float64(max(1, n)), output / float64(max(1, n))
}
