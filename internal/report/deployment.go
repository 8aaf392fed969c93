package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/plot"
)

// deployed says how many copies of a command ran, and on what.
func (x study) deployed(trial, replicas int) string {
	replicas = max(replicas, 1)
	text := count(replicas, "replica")
	if t := x.trials[trial]; t != nil {
		text += " on " + devices(t, replicas)
	}
	switch {
	case replicas < 2:
		return text
	case x.Predicted:
		return text + ", replayed together, not one of them multiplied"
	}
	return text + ", loaded together by the client (measured, not multiplied)"
}

// devices are those that a trial was allocated, those among them that no replica
// used named.
func devices(t *outcome.Trial, replicas int) string {
	if t.GPUs == 0 {
		return "the CPU"
	}
	idle := t.GPUs - t.Each*replicas
	if t.Each == 0 || idle <= 0 {
		return count(t.GPUs, "GPU")
	}
	each := ""
	if replicas > 1 {
		each = " each"
	}
	return fmt.Sprintf("%s (%d%s, %d unused)", count(t.GPUs, "GPU"), t.Each, each, idle)
}

// own is what each replica of a trial needs for itself.
func (x study) own(trial int) string {
	if t := x.trials[trial]; t != nil && t.GPUs == 0 {
		return "a port of its own"
	}
	return "its own GPUs and port"
}

// startLines are the commands that start all of a deployment: on one machine a script, on several
// and where one process waits for another each under a line that says where and when. line writes
// one command.
func startLines(all []outcome.Process, line func(string) string) string {
	plain := !slices.ContainsFunc(all, func(p outcome.Process) bool { return p.Node != "" || p.Name != "" })
	var b strings.Builder
	written := map[string]bool{}
	for _, p := range all {
		if !plain {
			b.WriteString(placeLine(p) + "\n")
		}
		if !written[p.Node+p.Files] {
			b.WriteString(p.Files)
		}
		written[p.Node+p.Files] = true
		b.WriteString(line(p.Command))
		if plain && len(all) > 1 {
			b.WriteString(" &")
		}
		b.WriteByte('\n')
	}
	if plain && len(all) > 1 {
		b.WriteString("wait")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// placeLine says where a process runs, and what the next one waits for.
func placeLine(p outcome.Process) string {
	text := "# " + cmp.Or(p.Name, "serves")
	if p.Replica > 0 {
		text += fmt.Sprintf(", of replica %d", p.Replica)
	}
	if p.Node != "" {
		text += ", on " + p.Node
	}
	if p.Wait != "" {
		text += "; the next waits " + p.Wait
	}
	return text
}

// startNote says what the commands of a deployment leave to their reader.
func (x study) startNote(p *outcome.Pick) string {
	var parts []string
	if outcome.Manifests(p.Script) {
		parts = append(parts, "the command kubectl apply -f "+p.Script+" starts all of it, in the study directory")
	} else if p.Script != "" && len(p.Processes) > 1 {
		parts = append(parts, "the script "+p.Script+" in the study directory starts all of it, waits until it serves, and ends it at Ctrl-C")
	}
	if slices.ContainsFunc(p.Processes, func(q outcome.Process) bool { return strings.Contains(q.Command, "\"${ADDR_") }) {
		parts = append(parts, "ADDR_ variables stand for the addresses of machines, which the study does not name")
	}
	if len(p.Processes) > 0 && p.Replicas > 1 {
		parts = append(parts, "spread the requests over the replicas")
	}
	if len(p.Processes) == 0 && p.Replicas > 1 && !outcome.Manifests(p.Script) {
		parts = append(parts, fmt.Sprintf("the command starts one replica: start it %d times, each on %s, and spread the requests over them", p.Replicas, x.own(p.Trial)))
	}
	return x.sentence(strings.Join(parts, "; "))
}

// software is an engine of the setup: what ran, by its own account.
type software struct {
	Title   string
	Version string
	Images  []string // of its containers, by digest
}

// software lists the engines with the versions and images that their trials name.
func (x study) software() []software {
	var out []software
	for _, e := range x.Engines {
		s := software{Title: cmp.Or(e.Title, e.Name)}
		var versions []string
		for _, t := range x.Trials {
			if t.Engine != e.Name {
				continue
			}
			if t.Version != "" && !slices.Contains(versions, t.Version) {
				versions = append(versions, t.Version)
			}
			if t.Image != "" && !slices.Contains(s.Images, t.Image) {
				s.Images = append(s.Images, t.Image)
			}
		}
		s.Version = cmp.Or(strings.Join(versions, ", "), e.Version, "version not stated")
		out = append(out, s)
	}
	return out
}

// Text is the engine in one line.
func (s software) Text() string {
	text := s.Title + ": " + s.Version
	if len(s.Images) > 0 {
		text += ", image " + strings.Join(s.Images, ", ")
	}
	return text
}

// factTexts say how a fact of an engine's log reads, in the order of a line. One
// without a text is a part of another, or says nothing of an engine that has just
// started.
var factTexts = []struct{ name, text string }{
	{"kv_tokens", "KV cache of %s"}, {"kv_gib", "%s of KV cache a rank"}, {"kv_bytes_per_token", "%s a token"},
	{"max_concurrency", "%s of the longest at once"},
	{"model_gib", "weights %s"}, {"graph_gib", "graphs %s"}, {"compute_gib", "working memory %s"}, {"free_gib", "%s left"},
	{"load_seconds", "%s to load"}, {"compile_seconds", "%s to compile"}, {"graph_seconds", "%s to capture graphs"}, {"init_seconds", "%s to profile and warm up"},
	{"slots", "slots for %s"}, {"slot_context", "%s a slot"},
	{"max_num_seqs", "at most %s at once"}, {"max_num_batched_tokens", "at most %s a step"}, {"max_model_len", "at most %s a request"},
	{"concurrency_len", ""}, {"kv_cells", ""}, {"peak_gib", ""}, {"device_gib", ""}, {"start_gib", ""}, {"memory_share", ""}, {"comm_seconds", ""},
	{"weights_seconds", ""}, {"dynamo_seconds", ""}, {"graph_sizes", ""}, {"max_prefill_tokens", ""}, {"sequence_blocks", ""}, {"context", ""},
	{"running_peak", ""}, {"waiting_peak", ""}, {"kv_usage_peak", ""}, {"accept_length", ""}, {"retractions", ""},
}

// factLine is what an engine's log tells of it, in one line. A fact that is not
// known here stands at its end under its own name.
func factLine(facts []outcome.EngineFact) string {
	var parts []string
	find := func(name string) (outcome.EngineFact, bool) {
		i := slices.IndexFunc(facts, func(f outcome.EngineFact) bool { return f.Name == name })
		if i < 0 {
			return outcome.EngineFact{}, false
		}
		return facts[i], true
	}
	for _, k := range factTexts {
		f, ok := find(k.name)
		if !ok || k.text == "" {
			continue
		}
		text := k.text
		if of, ok := find("concurrency_len"); ok && k.name == "max_concurrency" {
			text = "%s of " + factText(of) + " at once"
		}
		parts = append(parts, fmt.Sprintf(text, factText(f)))
	}
	for _, f := range facts {
		known := slices.ContainsFunc(factTexts, func(k struct{ name, text string }) bool { return k.name == f.Name })
		if !known {
			parts = append(parts, f.Name+" "+factText(f))
		}
	}
	return strings.Join(parts, "; ")
}

// factText is a fact's value with its unit.
func factText(f outcome.EngineFact) string {
	var n string
	switch {
	case f.Unit == "GiB":
		return fmt.Sprintf("%.2f GiB", f.Value)
	case f.Unit == "s":
		return fmt.Sprintf("%.1f s", f.Value)
	case f.Value == float64(int(f.Value)):
		n = plot.Tally(int(f.Value))
	default:
		n = fmt.Sprintf("%.4g", f.Value)
	}
	if f.Value == 1 {
		return n + " " + strings.TrimSuffix(f.Unit, "s")
	}
	return strings.TrimSpace(n + " " + f.Unit)
}
