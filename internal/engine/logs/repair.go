package logs

import (
	"math"
	"strconv"
	"strings"

	"perflab/internal/engine"
)

// memoryStep is by how much a share of memory is moved at a time, and mostMemory
// where it ends: what lies beyond runs out under load.
const (
	memoryStep = 0.05
	mostMemory = 0.95
	leastShare = 0.3
)

// always sets a parameter to a value.
func always(name, value string) func([]string) map[string]string {
	return func([]string) map[string]string { return map[string]string{name: value} }
}

// unset leaves a parameter to the engine.
func unset(name string) func([]string) map[string]string { return always(name, "") }

// take sets a parameter to what a group captured.
func take(name string, group int) func([]string) map[string]string {
	return func(groups []string) map[string]string {
		if groups[group] == "" {
			return nil
		}
		return map[string]string{name: groups[group]}
	}
}

// half sets a parameter to half of what a group captured.
func half(name string, group int) func([]string) map[string]string {
	return func(groups []string) map[string]string { return halved(name, groups[group]) }
}

// fittingLen sets the length to what a group says fits, in whole blocks of 16 tokens.
func fittingLen(group int) func([]string) map[string]string {
	return func(groups []string) map[string]string {
		n, err := strconv.Atoi(groups[group])
		if err != nil || n < 16 {
			return nil
		}
		return map[string]string{engine.MaxModelLen: strconv.Itoa(n / 16 * 16)}
	}
}

// shareOfNode sets the share of a host's memory, of which the first of two groups is free
// and the second is there, to a step less than what is free.
func shareOfNode(groups []string) map[string]string {
	free, _ := strconv.ParseFloat(groups[1], 64)
	all, _ := strconv.ParseFloat(groups[2], 64)
	share := math.Floor((free/all-memoryStep)*100) / 100
	if !(share >= memoryStep) { // nor where nothing is there
		return nil
	}
	return map[string]string{engine.MemoryShare: strconv.FormatFloat(share, 'f', -1, 64)}
}

// dividingTP sets tp to the largest smaller power of two that divides the heads: what
// else is split, KV heads above all, mostly comes in powers of two.
func dividingTP(groups []string) map[string]string {
	heads, _ := strconv.Atoi(groups[1])
	tp, _ := strconv.Atoi(groups[2])
	return smallerTP(tp, func(t int) bool { return heads%t == 0 && t&(t-1) == 0 })
}

func smallerTP(tp int, fits func(int) bool) map[string]string {
	for t := tp - 1; t > 0; t-- {
		if fits(t) {
			return map[string]string{engine.TP: strconv.Itoa(t)}
		}
	}
	return nil
}

func halved(name, value string) map[string]string {
	n, err := strconv.Atoi(value)
	if err != nil || n < 2 {
		return nil
	}
	return map[string]string{name: strconv.Itoa(n / 2)}
}

// wholeBlocks keeps experts whole by expert parallelism, or takes the largest tp with
// whole FP8 blocks that divides the one there is, as the heads then divide too.
func wholeBlocks(f *Failure, c engine.Command) map[string]string {
	routed := strings.Contains(f.groups[1], "gate's") || strings.Contains(f.groups[1], "down's")
	if on := c.Params[engine.ExpertParallel]; routed && (on == "" || on == "false" || on == "1") {
		return map[string]string{engine.ExpertParallel: "true"}
	}
	part, _ := strconv.Atoi(f.groups[2])
	block, _ := strconv.Atoi(f.groups[4])
	tp := c.Count(engine.TP)
	if block < 1 {
		return nil
	}
	width := part * tp
	return smallerTP(tp, func(t int) bool { return tp%t == 0 && width%(t*block) == 0 })
}

// halfTP halves tp where it is what something did not divide by.
func halfTP(f *Failure, c engine.Command) map[string]string {
	if c.Params[engine.TP] != f.groups[2] {
		return nil
	}
	return halved(engine.TP, c.Params[engine.TP])
}

// lessMemory takes a step less of the device.
func lessMemory(f *Failure, c engine.Command) map[string]string { return f.moveShare(c, -memoryStep) }

// moreMemory takes a step more.
func moreMemory(f *Failure, c engine.Command) map[string]string { return f.moveShare(c, memoryStep) }

// moveShare moves the share from what the command says, else from what the log says
// that it was, else from the engine's default.
func (f *Failure) moveShare(c engine.Command, step float64) map[string]string {
	text := c.Params[engine.MemoryShare]
	if text == "" {
		text = f.share
	}
	if text == "" {
		text = defaultShare(c)
	}
	have, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	want := math.Round(min(have+step, max(mostMemory, have))*1000) / 1000
	if want == have || want < leastShare {
		return nil
	}
	return map[string]string{engine.MemoryShare: strconv.FormatFloat(want, 'f', -1, 64)}
}

// defaultShare is the share of memory that an engine takes when it is not told;
// SGLang derives its own from the device.
func defaultShare(c engine.Command) string {
	switch c.Engine {
	case "vllm":
		if c.AtLeast("0.20") {
			return "0.92"
		}
		return "0.9"
	case "trtllm":
		return "0.9"
	}
	return ""
}

// lessContext halves the context of llama.cpp, by whichever parameter says it, or else its slots.
func lessContext(_ *Failure, c engine.Command) map[string]string {
	for _, name := range []string{engine.ContextSize, engine.MaxModelLen, engine.MaxNumSeqs} {
		if r := halved(name, c.Params[name]); r != nil {
			return r
		}
	}
	return nil
}
