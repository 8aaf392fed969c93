package audit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// machine is what a run was measured on, as far as it is known. Where the text
// leaves a choice it is the faster one, so that bounds stay bounds.
type machine struct {
	model arch.Model
	acc   arch.Accelerator
	gpus  int
	spec  float64     // tokens that a step may yield per sequence: 1 without speculation
	kv    int         // bytes of an element of the cache, at least
	wider *arch.Model // as the text calls the model, where a smaller format counts; nil: as it is
}

// recognise finds model and hardware of a run. What is missing is a sentence;
// "" where the document names neither.
func recognise(f *interop.File, r *interop.Run, o Options) (m machine, missing string) {
	name, ok := modelOf(f, r, o, &m)
	hardware := r.Header.Label(result.LabelHardware)
	known := o.Accelerator != nil
	if known {
		m.acc = *o.Accelerator
	} else {
		m.acc, known = AcceleratorIn(surroundings(f, r, hardware)...)
	}
	switch {
	case !ok && !known && name == "" && hardware == "":
		return m, ""
	case !ok && name == "":
		return m, "no model is named"
	case !ok:
		return m, unknown("model", name)
	case !known && hardware == "":
		return m, "no hardware is named"
	case !known:
		return m, unknown("hardware", hardware)
	}
	ws := strings.Fields(r.Header.Command)
	m.spec, m.kv = speculation(ws), 2 // bytes, of 16-bit elements
	if slices.ContainsFunc(ws, func(w string) bool { return strings.Contains(w, "fp8") }) {
		m.kv = 1
	}
	m.gpus = cmp.Or(o.GPUs, gpusOf(r))
	if m.gpus > 0 && !m.fits() && o.GPUs == 0 {
		m.gpus = max(m.gpus, stated(r)) // the command does not say it all
	}
	if m.gpus == 0 || !m.fits() {
		return m, "how many devices the run used is not known"
	}
	return m, ""
}

// unknown says that a model or hardware is not known, or not named at all.
func unknown(what, name string) string {
	if name == "" {
		return "the document names no " + what
	}
	return "the " + what + " " + strconv.Quote(name) + " is not known here"
}

// fits reports whether the weights fit the devices.
func (m machine) fits() bool {
	return float64(m.model.WeightBytes()) <= float64(m.gpus)*m.acc.MemoryGiB*(1<<30)
}

// introduction is how many lines of a document introduce it.
const introduction = 3

// surroundings are the texts that may name the hardware, the nearest first.
func surroundings(f *interop.File, r *interop.Run, hardware string) []string {
	var texts []string
	for _, s := range slices.Backward(r.Place.Section) {
		if f.Doc == nil || s != f.Doc.Title {
			texts = append(texts, s)
		}
	}
	texts = append(texts, hardware)
	if f.Doc != nil {
		texts = append(texts, f.Doc.Title)
		for _, p := range f.Doc.Prose[:min(introduction, len(f.Doc.Prose))] {
			texts = append(texts, p.Text)
		}
	}
	return texts
}

// modelOf finds the model of a run: what it was served as, then what the text
// calls it. Where nothing near the run tells the format of the weights and the
// document speaks of a smaller one, the smaller one counts.
func modelOf(f *interop.File, r *interop.Run, o Options, m *machine) (name string, ok bool) {
	if o.Model != nil {
		m.model = *o.Model
		return m.model.Name, true
	}
	names := []string{r.Header.Model}
	for _, s := range slices.Backward(r.Place.Section) {
		names = append(names, s)
	}
	for _, n := range names {
		for w := range strings.FieldsSeq(n) {
			w = strings.Trim(w, "`*\"'(),;:")
			if !strings.Contains(w, "-") || !strings.ContainsAny(w, "0123456789") {
				continue // no name of a model: spares looking for its neighbours
			}
			found, err := arch.LookupModel(w)
			if err != nil {
				continue
			}
			m.model = found
			if found.Format == arch.BF16 && smallest(f, r, &m.model) {
				m.wider = &found
			}
			return n, true
		}
	}
	return r.Header.Model, false
}

// smallest takes the smallest format of the weights that a document speaks of,
// and reports whether there is one.
func smallest(f *interop.File, r *interop.Run, m *arch.Model) bool {
	texts := append([]string{r.Header.Command}, r.Place.Section...)
	if f.Doc != nil && !strings.Contains(r.Header.Command, m.Name) { // the command does not name the weights
		texts = append(texts, f.Doc.Title)
		for _, s := range f.Doc.Scripts {
			texts = append(texts, s.Text)
		}
		for _, s := range f.Doc.Sections {
			texts = append(texts, s.Title)
		}
		for _, p := range f.Doc.Prose {
			texts = append(texts, p.Text)
		}
	}
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, c := range []struct{ word, suffix string }{
		{"awq", "-AWQ"}, {"gptq", "-AWQ"}, {"int4", "-AWQ"}, {"w4a16", "-AWQ"}, {"nvfp4", "-NVFP4"}, {"fp8", "-FP8"}, {"w8a8", "-FP8"},
	} {
		if !strings.Contains(all, c.word) {
			continue
		}
		if found, err := arch.LookupModel(strings.TrimSuffix(m.Name, "/") + c.suffix); err == nil {
			*m = found
			return true
		}
	}
	return false
}

// acceleratorNames are names of accelerators in texts, the more telling first: of parts that share
// a name, the fastest.
var acceleratorNames = []struct {
	all  []string // words that the text has
	name string
}{
	{[]string{"h100", "pcie"}, "h100-pcie"},
	{[]string{"h100"}, "h100-sxm"},
	{[]string{"h200"}, "h200"},
	{[]string{"h800"}, "h800-sxm"},
	{[]string{"h20"}, "h20"},
	{[]string{"a800"}, "a800-sxm-80"},
	{[]string{"a100", "40gb"}, "a100-sxm-40"},
	{[]string{"a100", "40 gb"}, "a100-sxm-40"},
	{[]string{"a100"}, "a100-sxm-80"},
	{[]string{"gb10"}, "gb10"},
	{[]string{"spark"}, "gb10"},
	{[]string{"l40s"}, "l40s"},
	{[]string{"4090"}, "rtx-4090"},
}

// AcceleratorIn finds the first of texts that names a known device. One that
// names several does not tell which of them a run used.
func AcceleratorIn(texts ...string) (arch.Accelerator, bool) {
	for _, t := range texts {
		low, name := strings.ToLower(t), ""
		if slices.ContainsFunc(otherDevices, func(w string) bool { return hasWord(low, w) }) {
			return arch.Accelerator{}, false
		}
		var of []string
		for _, a := range acceleratorNames { // the more exact name first
			switch {
			case slices.ContainsFunc(a.all, func(w string) bool { return !hasWord(low, w) }):
			case name == "":
				name, of = a.name, a.all
			case !slices.ContainsFunc(a.all, func(w string) bool { return slices.Contains(of, w) }):
				return arch.Accelerator{}, false
			}
		}
		if name != "" {
			acc, err := arch.LookupAccelerator(name)
			return acc, err == nil
		}
	}
	return arch.Accelerator{}, false
}

// otherDevices are names of devices whose speed is not known here: a text that
// has one is not about another device of the document.
var otherDevices = []string{"mi210", "mi250", "mi250x", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x", "gaudi", "gaudi2", "gaudi3", "tpu", "v5e", "v6e", "trillium",
	"ironwood", "gb300", "b300", "v100", "xeon", "jetson", "thor", "910c"}

// hasWord reports whether a text has a word that does not go on with letters or
// digits before it, nor with letters after it but for a count ("H200x8").
func hasWord(text, word string) bool {
	for i := 0; ; {
		j := strings.Index(text[i:], word)
		if j < 0 {
			return false
		}
		at, end := i+j, i+j+len(word)
		before := at == 0 || !alnum(text[at-1]) || text[at-1] == 'x'
		if after := end == len(text) || !alnum(text[end]) || text[end] == 'x'; before && after {
			return true
		}
		i = end
	}
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// gpusOf is the number of devices that a run used: by its command, where there
// is one that tells, else as the text says; 0 where nothing tells.
func gpusOf(r *interop.Run) int {
	if n := command.Read(r.Header.Command).GPUs(); r.Header.Command != "" && n > 0 {
		return n
	}
	return stated(r)
}

// leadingCount finds "8 x", "4 nodes", "H200x8".
var leadingCount = Pattern(`(?i)(?:^|[^\w.])(\d{1,4})\s*(?:x|×|nodes?\b|gpus?\b)|x\s?(\d{1,4})$|^an? single\b`)

// stated is the number of devices that the text gives; 0 for none.
func stated(r *interop.Run) int {
	texts := []string{r.Header.Label(result.LabelGPUs) + " GPUs", r.Header.Label(result.LabelNodes) + " nodes"}
	for _, s := range slices.Backward(r.Place.Section) {
		texts = append(texts, s)
	}
	for _, t := range append(texts, r.Header.Label(result.LabelHardware)) {
		m := leadingCount().FindStringSubmatch(strings.TrimSpace(t))
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1] + m[2])
		if err != nil {
			n = 1
		}
		if n > 0 {
			return n
		}
	}
	return 0
}

// Speculative decoding.
const (
	usualDrafts = 8  // tokens of a step: as many as anyone drafts, unless it is said
	mostDrafts  = 64 // that are believed
	flagWords   = 3  // that a flag and its value take
)

// speculation is the number of tokens that a step may yield per sequence.
func speculation(ws []string) float64 {
	spec := 1.0
	for i, w := range ws {
		low := strings.ToLower(w)
		if !strings.Contains(low, "speculative") && !strings.Contains(low, "spec_dec") && !strings.Contains(low, "mtp") && !strings.Contains(low, "eagle") {
			continue
		}
		spec = max(spec, usualDrafts)
		text := strings.Join(ws[i:min(len(ws), i+flagWords)], " ")
		if m := draftTokens().FindStringSubmatch(text); m != nil {
			k, _ := strconv.ParseFloat(m[1], 64)
			return 1 + min(k, mostDrafts)
		}
	}
	return spec
}

var draftTokens = Pattern(`num_speculative_tokens\W{1,4}(\d+)`)
