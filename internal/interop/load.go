package interop

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// benchOf takes a benchmark command apart.
func benchOf(c *Script) bench {
	requested := command.Read(c.Text)
	b := bench{
		shownCommand: commandOf(c), line: c.Line, requests: requested.Flag("num-prompts", "max-requests"), dataset: strings.ToLower(requested.Flag("dataset-name")),
		input: requested.Flag("random-input-len", "random-input", "input-len"), output: requested.Flag("random-output-len", "random-output", "output-len"),
		rate: requested.Flag("request-rate", "rate"), concurrent: requested.Flag("max-concurrency"),
	}
	for _, k := range []struct{ word, client string }{
		{"guidellm", clientGPUStack}, {"benchmark-runner", clientGPUStack}, {"sglang.bench", clientSGLang}, {"perflab", clientPerflab},
		{"vllm bench", clientVLLM}, {"vllm-bench", clientVLLM}, {"benchmark_serving", clientVLLM},
	} {
		if strings.Contains(c.Text, k.word) {
			b.client = k.client
			break
		}
	}
	b.serve = b.client == clientVLLM && (strings.Contains(squeeze(c.Text), "bench serve") || strings.Contains(c.Text, "benchmark_serving"))
	if b.serve && requested.Flag("ramp-up-strategy", "ramp-up-start-rps", "ramp-up-end-rps") == "" {
		b.rate, b.requests = cmp.Or(b.rate, "inf"), cmp.Or(b.requests, "1000")
	}
	return b
}

// load sets what is known of the load: by its profile, the benchmark command,
// and the block itself, which has the last word.
func (f *facts) load(r *Run, p *profile) {
	h, labels := &r.Header, r.Header.Imported.Labels
	if p != nil {
		maps.Copy(labels, p.keys)
		labels[labelProfile], labels[result.LabelDataset], labels[result.LabelRate] = p.name, strings.ToLower(p.keys["dataset_name"]), p.keys["request_rate"]
		labels[result.LabelCase] = cmp.Or(labels[result.LabelCase], p.name)
		h.Requests, _ = strconv.Atoi(p.keys["total_requests"])
	}
	if b := f.benchFor(r); b != nil {
		labels[result.LabelBenchCommand] = f.filled(b.shownCommand, r, p)
		labels[result.LabelDataset] = cmp.Or(labels[result.LabelDataset], b.dataset)
		if !isPlaceholder(b.rate) {
			labels[result.LabelRate] = cmp.Or(labels[result.LabelRate], b.rate)
		}
		if h.Requests == 0 {
			h.Requests = int(min(sent(r), 1e9))
		}
		h.Model = b.model
		if b.serve || b.concurrent != "" {
			labels[result.LabelLimit] = cmp.Or(b.concurrent, "none")
		}
	}
	labels[result.LabelDataset] = cmp.Or(labels[result.LabelDataset], datasetIn(labels[result.LabelCase]))
	h.Workload = labels[result.LabelDataset]
	for _, o := range r.Other {
		if metricOf(squeeze(o.Label)).name == "request_rate" {
			labels[result.LabelRate] = o.Text
		}
	}
	if fig, ok := r.Figure("request_rate"); ok {
		labels[result.LabelRate] = fig.Text
	}
	if v, _, ok := number(labels[result.LabelRate]); ok && v > 0 {
		h.Rate = v
	}
	h.Limit, _ = strconv.Atoi(labels[result.LabelLimit])
	if fig, ok := r.Figure("max_concurrency"); ok && r.Definition("max_concurrency") == result.Ours && fig.Value >= 1 && fig.Value < 1e9 {
		h.Limit = int(fig.Value)
	}
}

// profileFor returns the profile of a block: the one that a line above names,
// else one that a heading names, by name or as "Rate 8".
func (f *facts) profileFor(b *found) *profile {
	for _, s := range slices.Backward(f.scopes) {
		for _, p := range f.profiles {
			if s.profile != "" && strings.EqualFold(s.profile, p.name) {
				return p
			}
		}
	}
	for _, t := range slices.Backward(b.section) {
		if p := f.profileIn(strings.ToLower(t)); p != nil {
			return p
		}
	}
	return nil
}

// profileIn returns the profile with the longest name that a heading has, or
// the only one of its rate.
func (f *facts) profileIn(title string) *profile {
	var best *profile
	for _, p := range f.profiles {
		if n := strings.ToLower(p.name); n != "" && strings.Contains(title, n) && (best == nil || len(n) > len(best.name)) {
			best = p
		}
	}
	rate, ok := strings.CutPrefix(title, "rate ")
	if best != nil || !ok {
		return best
	}
	for _, p := range f.profiles {
		if p.keys["request_rate"] == rate {
			if best != nil {
				return nil
			}
			best = p
		}
	}
	return best
}

// benchFor returns the benchmark command that can be that of a block, the
// nearest above it: its client is the block's, its counts agree with the
// block's, and its dataset with the case.
func (f *facts) benchFor(r *Run) *bench {
	for i, b := range slices.Backward(f.benches) {
		if b.line < r.Place.Line && b.fits(r) {
			return &f.benches[i]
		}
	}
	return nil
}

// fits reports whether a benchmark command can have made a run's counts.
func (b bench) fits(r *Run) bool {
	if b.client != r.Header.Imported.Client || b.requests == "" {
		return false
	}
	if n, _, ok := number(b.requests); !isPlaceholder(b.requests) && (!ok || n != sent(r)) {
		return false
	}
	of := cmp.Or(r.Header.Label(result.LabelDataset), datasetIn(r.Header.Label(result.LabelCase)))
	if of != "" && b.dataset != "" && of != b.dataset {
		return false
	}
	return lengthFits(r, b.input, "total_input_tokens", 0.95) && lengthFits(r, b.output, "total_output_tokens", 0)
}

// lengthFits reports whether a total is near a length of all requests: not
// above it by more than 5 %, and not below the share least.
func lengthFits(r *Run, length, total string, least float64) bool {
	l, _, ok := number(length)
	t, have := r.Figure(total)
	n, counted := r.Figure("completed")
	if !ok || !have || !counted {
		return true
	}
	want := l * n.Value
	return t.Value <= 1.05*want && t.Value >= least*want
}
