package workload

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Describe says in one line for a report what is sent and when.
func (w *Workload) Describe() string {
	s := w.spec
	parts := []string{w.lengths(), w.extent(), s.arrivals()}
	if s.RandomImages > 0 {
		parts[0] += fmt.Sprintf(", %s of %s", plural(s.RandomImages, "image"), s.RandomImageSize)
	}
	if n := len(s.LoraModules); n > 0 {
		parts[1] += " over " + plural(n, "adapter")
	}
	if s.MaxConcurrency > 0 {
		parts = append(parts, fmt.Sprintf("at most %d at a time", s.MaxConcurrency))
	}
	if n := w.nonce.describe(w.src.ids); n != "" {
		parts = append(parts, n)
	}
	return s.title() + ": " + strings.Join(parts, ", ")
}

func (s Spec) title() string {
	file := filepath.Base(s.Path)
	switch s.Dataset {
	case "sharegpt":
		if s.ShareGPTFilter == "guidellm" {
			return "ShareGPT dataset (" + file + ", as guidellm takes it)"
		}
		return "ShareGPT dataset (" + file + ")"
	case "azure":
		return "Azure trace (" + file + ")"
	case "mooncake":
		return "Mooncake trace (" + file + ")"
	case "burstgpt":
		if s.BurstGPTModel != "" {
			return "BurstGPT trace (" + file + ", " + s.BurstGPTModel + ")"
		}
		return "BurstGPT trace (" + file + ")"
	case "jsonl":
		return "Custom dataset (" + file + ")"
	case "conversations":
		if s.Path == "" {
			return "Made-up conversations"
		}
		return "Conversations (" + file + ")"
	case "sonnet":
		if s.Path != "" {
			return "Sonnet dataset (" + file + ")"
		}
		return "Sonnet dataset"
	case "prefix_repetition":
		return "Prefix repetition dataset"
	case "shared-prefix":
		return "Shared prefix dataset"
	}
	kind := "Random dataset"
	if s.RandomRNG == "vllm" {
		kind += " (as vLLM draws it)"
	}
	if s.RandomIDs {
		kind += " of token ids"
	}
	return kind
}

// extent is how much is sent.
func (w *Workload) extent() string {
	text := count(w.Len())
	if w.spec.timeDecides() {
		text = fmt.Sprintf("for %v", w.spec.length())
	}
	if w.src.conversations == nil {
		return text
	}
	turns := float64(w.src.turns()) / float64(len(w.src.rows))
	if w.spec.timeDecides() {
		return fmt.Sprintf("conversations of %.3g turns on average, %s", turns, text)
	}
	return text + " in " + plural(len(w.src.rows), "conversation")
}

// unit is what arrives.
func (s Spec) unit() string {
	if s.Dataset == "conversations" {
		return "conversations/s"
	}
	return "requests/s"
}

func (w *Workload) lengths() string {
	s := w.spec
	switch {
	case s.Dataset == "prefix_repetition" || s.Dataset == "shared-prefix":
		return s.describePrefixes()
	case s.Dataset == "random" && s.Scenario == "":
		in, out := s.RandomInputLen, s.RandomOutputLen
		text := between(in, s.RandomRangeRatio) + " input tokens, " + between(out, s.RandomRangeRatio) + " output tokens"
		if s.RandomPrefixLen > 0 {
			return fmt.Sprintf("%d shared and %s", s.RandomPrefixLen, text)
		}
		return text
	}
	t := w.Totals()
	n := float64(len(w.src.rows))
	if w.src.conversations != nil {
		n = float64(w.src.turns())
	}
	text := ""
	if s.Scenario != "" {
		text = "scenario " + s.Scenario + ", "
	}
	text += fmt.Sprintf("on average %.0f input tokens", float64(t.Input)/n)
	if t.Output > 0 {
		text += fmt.Sprintf(" and %.0f output tokens", float64(t.Output)/n)
	}
	return text
}

func between(length int, ratio float64) string {
	lo, hi := lengthRange(length, ratio)
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

func (s Spec) arrivals() string {
	var kind string
	switch s.Arrival {
	case "inf":
		if s.closed() && s.Duration != "" {
			return "each when another ends"
		}
		return "all at once"
	case "trace":
		if s.Speed == 1 {
			return "at the times of the trace"
		}
		return fmt.Sprintf("at the times of the trace, %g times as fast", s.Speed)
	case "constant":
		kind = "evenly spaced arrivals"
	case "poisson":
		kind = "Poisson arrivals"
	case "gamma":
		kind = fmt.Sprintf("gamma arrivals (burstiness %g)", s.Burstiness)
	}
	if s.RampStrategy != "" {
		return fmt.Sprintf("%s from %g to %g %s (%s ramp)", kind, s.RampStart, s.RampEnd, s.unit(), s.RampStrategy)
	}
	if s.Steps != "" {
		return fmt.Sprintf("%s at %s in steps of %s", kind, s.unit(), s.Steps)
	}
	return fmt.Sprintf("%s at %s %s", kind, s.Rate, s.unit())
}

func count(requests int) string { return plural(requests, "request") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
