package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// weightsFit finds runs of a model whose weights, in the smallest format that
// the document speaks of, are more than the devices that it names can hold.
func weightsFit(g figures) []Finding {
	if g.run.Sim || g.run.Header.Simulated || g.run.Header.Imported == nil {
		return nil
	}
	var m machine
	if _, ok := modelOf(g.file, g.run, g.options, &m); !ok || m.sheltered(g) {
		return nil
	}
	hardware := g.run.Header.Label(result.LabelHardware)
	acc, ok := AcceleratorIn(surroundings(g.file, g.run, hardware)...)
	if g.options.Accelerator != nil {
		acc, ok = *g.options.Accelerator, true
	}
	m.acc, m.gpus = acc, g.devicesNamed()
	if !ok || m.gpus == 0 || m.fits() {
		return nil
	}
	need, have := float64(m.model.WeightBytes())/(1<<30), float64(m.gpus)*m.acc.MemoryGiB
	return []Finding{g.finding("weights-do-not-fit", Warning, "at least "+Counted(int(need/m.acc.MemoryGiB)+1, "device"),
		fmt.Sprintf("the weights of %s take %s GiB (%s), and %s has %s GiB: the run was not made on what the document names", m.model.Name, num(need), strings.ToUpper(string(m.model.Format)), m.title(), num(have)))}
}

// sheltered reports whether the weights may lie elsewhere than on the devices,
// or in a smaller format than is known here.
func (m machine) sheltered(g figures) bool {
	words := []string{"offload", " --config", "extra_llm_api_options", "gguf", "bnb", "bitsandbytes", "4bit", "4-bit", "q4_"}
	if m.model.Format == arch.BF16 {
		words = append(words, "int8", "8bit", "8-bit", "q8_", "fp4", "fp8", "quant")
	}
	text := strings.ToLower(" " + g.run.Header.Command + " " + g.run.Header.Model + " " + strings.Join(g.run.Place.Section, " "))
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// devicesNamed is the number of devices that a run is said to have used: by the
// reader, by the sizes of parallelism in its command, else by the text; 0 where
// nothing tells. Flags without a command tell no number by themselves: what
// starts the engine may add to them.
func (g figures) devicesNamed() int {
	c := command.Read(g.run.Header.Command)
	switch {
	case g.options.GPUs > 0:
		return g.options.GPUs
	case c.Flag("tp", "pp", "dp") != "":
		return c.GPUs()
	}
	n := stated(g.run)
	nodes, _ := strconv.Atoi(g.run.Header.Label(result.LabelNodes))
	gpus, _ := strconv.Atoi(g.run.Header.Label(result.LabelGPUs))
	n = max(n, nodes*max(gpus, 1))
	if c.Engine != "" {
		n = max(n, 1)
	}
	return n
}
