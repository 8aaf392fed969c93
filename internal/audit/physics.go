package audit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
)

// physics checks a run against what its hardware can do, where model and
// hardware are known.
func physics(g figures) []Finding {
	if g.run.Sim || g.run.Header.Simulated || g.run.Header.Imported == nil {
		return nil
	}
	document := g.file.Doc != nil
	m, missing := recognise(g.file, g.run, g.options)
	if missing != "" {
		if !document {
			return nil
		}
		return []Finding{g.finding("physics-skipped", Note, "", "figures are not held against the hardware: "+missing)}
	}
	if m.gpus == 0 {
		return nil
	}
	out := slices.Concat(m.prefill(g), m.arithmetic(g), m.decode(g), m.generation(g))
	if starved, ok := m.starved(g); ok && document && len(g.file.Runs) > 1 {
		out = append(out, starved)
	}
	return out
}

// prefill checks the first token of requests that were alone.
func (m machine) prefill(g figures) []Finding {
	v, ok := g.all("completed", "total_input_tokens", "median_ttft_ms")
	if !ok || v[0].Lo < 1 || v[1].Lo < 1 {
		return nil
	}
	peak, counted := g.get("max_concurrent_requests")
	if v[0].Lo != 1 && !(counted && peak.Hi <= 1) {
		return nil
	}
	prompt := v[1].Over(v[0]).mid()
	ttft := v[2].Hi / 1000
	memory, compute := m.readPrompt(prompt), m.multiply(prompt)
	least := max(memory, compute)
	text := fmt.Sprintf("a prompt of %s tokens has its first token after %s ms, and ", num(prompt), g.text("median_ttft_ms"))
	cite := []string{"median_ttft_ms", "total_input_tokens", "completed"}
	if ttft < least {
		return []Finding{g.finding("prefix-cache-suspected", Warning, "at least "+num(1000*least)+" ms",
			text+fmt.Sprintf("%s needs %s ms to read the weights and %s ms to multiply: the prompt was in the prefix cache%s, or the first message came before the first token", m.title(), num(1000*memory), num(1000*compute), probed(g)), cite...)}
	}
	if serial := m.serialPrefill(prompt); ttft < serial {
		return []Finding{g.finding("prefix-cache-likely", Note, "about "+num(1000*serial)+" ms or more",
			text+fmt.Sprintf("%s needs %s ms unless communication overlaps: the prompt was likely in the prefix cache%s", m.title(), num(1000*serial), probed(g)), cite...)}
	}
	return nil
}

// probed says how a prompt comes into the cache before it is measured, of a
// client that does so.
func probed(g figures) string {
	if im := g.run.Header.Imported; im != nil && im.Client == "vllm bench serve" {
		return " (the ready check of this client sends the first prompt before it measures)"
	}
	return ""
}

// arithmetic checks all tokens of a run against the peak of the arithmetic.
func (m machine) arithmetic(g figures) []Finding {
	v, ok := g.all("total_input_tokens", "total_output_tokens", "duration")
	if !ok || v[2].Hi <= 0 {
		return nil
	}
	least := m.multiply(v[0].Lo + v[1].Lo)
	if least <= v[2].Hi {
		return nil
	}
	return []Finding{g.finding("prefill-beyond-hardware", Warning, "at least "+num(least)+" s",
		fmt.Sprintf("%s multiplies for %s s at its peak over %s tokens, and the run lasted %s s: prompts came from a prefix cache", m.title(), num(least), num(v[0].Lo+v[1].Lo), g.text("duration")),
		"duration", "total_input_tokens", "total_output_tokens")}
}

// decode checks times per token against one reading of the weights.
func (m machine) decode(g figures) []Finding {
	n, ok := g.outputPerRequest()
	if !ok || n.Lo < 2 {
		return nil
	}
	least := 1000 * m.step(1) / m.spec
	for _, name := range []string{"median_tpot_ms", "mean_tpot_ms", "median_itl_ms", "mean_itl_ms"} {
		v, ok := g.get(name)
		least := least
		switch g.definition(name) {
		case result.E2EPerToken, result.E2EPerTokenWeighted:
			least *= (n.Lo - 1) / n.Lo // the first of n tokens is of the prefill
		case result.MessageGap, result.ChunkGap, result.TokenGapZeros:
			continue // several in one read are gaps of nothing
		case result.Ours:
			ok = ok && name[len(name)-6:] != "itl_ms"
		}
		if ok && v.Hi < least {
			return []Finding{g.finding("decode-beyond-hardware", Warning, "at least "+num(least)+" ms",
				fmt.Sprintf("%s %s is below the %s ms that %s needs to read the weights that one token uses: it is no decode time", g.by[name].Label, g.text(name), num(least), m.title()), name)}
		}
	}
	return nil
}

// generation checks mean and peak of the output throughput against the steps
// that the hardware can make.
func (m machine) generation(g figures) []Finding {
	flying, ok := g.get("max_concurrent_requests")
	if !ok {
		flying, ok = g.get("completed")
	}
	if !ok || flying.Hi < 1 {
		return nil
	}
	most := m.rate(flying.Hi)
	assumed := ""
	if m.wider != nil {
		w := m
		w.model, w.wider = *m.wider, nil
		assumed = fmt.Sprintf(" (%s weights, which its command does not name; with %s %s)", strings.ToUpper(string(m.model.Format)), strings.ToUpper(string(w.model.Format)), num(w.rate(flying.Hi)))
	}
	for _, c := range []struct{ kind, name string }{
		{"throughput-beyond-hardware", "output_throughput"},
		{"peak-beyond-hardware", "max_output_tokens_per_s"},
	} {
		v, ok := g.get(c.name)
		if !ok || v.Lo <= most {
			continue
		}
		if tokens, counted := g.get("total_output_tokens"); counted && v.above(tokens) && g.definition(c.name) == result.InverseGapPeak {
			continue // said without any hardware: peak-inverse-gap
		}
		return []Finding{g.finding(c.kind, Warning, "at most "+num(most)+" tok/s",
			fmt.Sprintf("%s %s: %s requests in flight on %s can get %s tok/s at most%s, by the bytes that a step reads", g.by[c.name].Label, g.text(c.name), num(flying.mid()), m.title(), num(most), assumed), c.name, "max_concurrent_requests")}
	}
	return nil
}

// sequences is how many ran at the peak: tokens in a second times the time
// between two of a stream.
func (m machine) sequences(g figures) (running, prompt, answer float64, ok bool) {
	v, ok := g.all("max_output_tokens_per_s", "median_itl_ms", "completed", "total_input_tokens", "total_output_tokens", "max_concurrent_requests")
	if !ok || v[2].Lo < 1 || v[1].Lo <= 0 || m.spec != 1 || g.definition("max_output_tokens_per_s") != result.MessageBuckets {
		return 0, 0, 0, false
	}
	running = min(v[0].mid()*v[1].mid()/1000, v[5].mid())
	return running, v[3].Over(v[2]).mid(), v[4].Over(v[2]).mid(), true
}

// What shows that the size of the cache held a run back. Shares of the memory are
// the engines' defaults, weights and cache together.
const (
	starvedShare  = 0.5 // of the requests in flight, that ran at once
	fewestStarved = 10  // requests in flight
	vllmMemory    = 0.92
	sglangMemory  = 0.84
	filledLeast   = 0.5 // of the cache, that the sequences hold: with less, something else held them
	filledMost    = 1.2 // more does not fit: the lengths are not as the means tell
)

// starved remarks on runs that the size of the cache held back.
func (m machine) starved(g figures) (Finding, bool) {
	n, prompt, answer, ok := m.sequences(g)
	flying, _ := g.get("max_concurrent_requests")
	if !ok || n > starvedShare*flying.Lo || flying.Lo < fewestStarved {
		return Finding{}, false
	}
	tokens := n * (prompt + answer/2)
	share := vllmMemory
	if g.run.Header.Label(result.LabelEngine) == "sglang" {
		share = sglangMemory
	}
	pool := share*float64(m.gpus)*m.acc.MemoryGiB*(1<<30) - float64(m.model.WeightBytes())
	room := pool / float64(max(1, m.model.KVBytesPerToken(m.kv)))
	if room <= 0 || tokens < filledLeast*room || tokens > filledMost*room {
		return Finding{}, false
	}
	running := Counted(int(math.Round(n)), "sequence")
	return g.finding("cache-starved", Note, running+" at once",
		fmt.Sprintf("%s tok/s at %s ms a token are %s at once, of %.0f in flight, with %s tokens, %.0f %% of the cache that the weights leave (%s tokens): memory bounds the run more than the engine",
			g.text("max_output_tokens_per_s"), g.text("median_itl_ms"), running, flying.mid(), num(tokens), 100*tokens/room, num(room)), "max_output_tokens_per_s", "median_itl_ms", "max_concurrent_requests"), true
}
