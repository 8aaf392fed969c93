package arch

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"perflab/internal/field"
	"perflab/internal/stat"
)

//go:embed models.json
var modelsJSON []byte

//go:embed accelerators.json
var acceleratorsJSON []byte

//go:embed links.json
var linksJSON []byte

// entry is one row of models.json: the shape of a model in its native format
// and how its quantised checkpoints differ.
type entry struct {
	ID             string   `json:"id"`
	Aliases        []string `json:"aliases"`
	FP8Block       int      `json:"fp8_block"`       // block of the vendor's own -FP8 checkpoint, 0 for per-channel scales
	NVFP4Attention Format   `json:"nvfp4_attention"` // format of the attention in NVFP4 checkpoints, "" for NVFP4
	Formats        []Format `json:"formats"`         // what the weights come in; empty: any
	Model          Model    `json:"model"`
}

// The embedded tables are read once; a fault in them is a fault of the build.
var (
	entries = sync.OnceValue(func() []entry { return mustDecode[entry]("models.json", modelsJSON) })
	links   = sync.OnceValue(func() []Link { return mustDecode[Link]("links.json", linksJSON) })
	devices = sync.OnceValue(func() []Accelerator {
		rows := mustDecode[Accelerator]("accelerators.json", acceleratorsJSON)
		for i := range rows {
			rows[i].couple()
		}
		return rows
	})
)

func mustDecode[T any](file string, data []byte) []T {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	var rows []T
	if err := dec.Decode(&rows); err != nil {
		panic(fmt.Sprintf("arch: embedded %s: %v", file, err))
	}
	return rows
}

// Models lists the known models in their native format, by repository id.
func Models() []Model {
	var ms []Model
	for _, e := range entries() {
		ms = append(ms, e.as(e.ID, e.Model.Format, e.FP8Block))
	}
	slices.SortFunc(ms, func(a, b Model) int { return cmp.Compare(a.Name, b.Name) })
	return ms
}

// Accelerators lists the known devices.
func Accelerators() []Accelerator { return slices.Clone(devices()) }

// host stands for the processors of whatever machine there is. Nothing is known of
// them, so nothing can be predicted: engines are only started on them and measured.
var host = Accelerator{Name: "cpu", Title: "CPU of the host", Platform: CPU, Source: "no figures: a host of any kind"}

// Known reports whether there are figures of the device to predict from.
func (a Accelerator) Known() bool { return a.BandwidthGBs > 0 }

// LookupAccelerator finds a known device by its short name, in any case. The name cpu
// is a host without one, and of no Known device.
func LookupAccelerator(name string) (Accelerator, error) {
	if strings.EqualFold(name, host.Name) {
		return host, nil
	}
	var names []string
	for _, a := range devices() {
		if strings.EqualFold(a.Name, name) {
			return a, nil
		}
		names = append(names, a.Name)
	}
	meant := ""
	if near := stat.Nearest(name, names); near != "" {
		meant = fmt.Sprintf("did you mean %s? Or ", near)
	}
	return Accelerator{}, fmt.Errorf("unknown accelerator %q: %suse one of %s, or cpu for a host without one, to measure on", name, meant, strings.Join(names, ", "))
}

// couple fills in the bandwidth and latency to the device's nearest peers.
func (a *Accelerator) couple() {
	l := a.Coupling(2)
	a.LinkGBs, a.LinkLatency = cmp.Or(a.LinkGBs, l.GBs), cmp.Or(a.LinkLatency, l.Latency)
}

// Coupling is what n of the devices exchange data over: their link while it
// couples as many, else the network. A device that names neither has what its
// own figures say.
func (a Accelerator) Coupling(n int) Link {
	name := a.Link
	if n > a.LinkDevices {
		name = a.Network
	}
	l, err := LookupLink(name)
	if err != nil || name == a.Link { // as measured on this device
		l.GBs, l.Latency = cmp.Or(a.LinkGBs, l.GBs), cmp.Or(a.LinkLatency, l.Latency)
	}
	return l
}

// HostCoupling is the link to the memory of the device's host; empty where there is none,
// or nothing is known of it.
func (a Accelerator) HostCoupling() Link {
	l, err := LookupLink(a.HostLink)
	if err != nil {
		return Link{}
	}
	return l
}

// LookupLink finds a known link by its short name, in any case.
func LookupLink(name string) (Link, error) {
	var names []string
	for _, l := range links() {
		if strings.EqualFold(l.Name, name) {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return Link{}, fmt.Errorf("unknown link %q: use one of %s", name, strings.Join(names, ", "))
}

// LookupModel finds a known model by repository id, path or bare name, in any
// case; a suffix such as -FP8, -AWQ or -NVFP4 selects the format of the
// checkpoint. The owner is not compared: a copy under another owner has the
// same shape.
func LookupModel(name string) (Model, error) {
	base, format, block := splitFormat(name)
	for _, e := range entries() {
		if !e.is(base) {
			continue
		}
		if format == "" {
			return e.as(name, e.Model.Format, e.FP8Block), nil
		}
		if len(e.Formats) > 0 && !slices.Contains(e.Formats, format) {
			return Model{}, fmt.Errorf("model %q: %s comes in %s only, not in %s", name, e.ID, e.Formats[0], format)
		}
		if block < 0 {
			block = e.FP8Block
		}
		return e.as(name, format, block), nil
	}
	return Model{}, field.Errorf("", "unknown model %q: nearest known are %s; for another, give its config.json by [model_config]",
		name, strings.Join(nearest(base, 3), ", "))
}

// is reports whether base, in lower case and without owner, names the model.
func (e entry) is(base string) bool {
	return base == lastElem(strings.ToLower(e.ID)) ||
		slices.ContainsFunc(e.Aliases, func(a string) bool { return strings.EqualFold(a, base) })
}

// as is the entry's model under a name and in a format.
func (e entry) as(name string, f Format, block int) Model {
	m := e.Model
	m.Name, m.Format, m.QuantBlock = name, f, 0
	if f == FP8 {
		m.QuantBlock = block
	}
	if f == NVFP4 {
		m.AttentionFormat = e.NVFP4Attention
	}
	if m.MoE != nil {
		m.MoE = new(*m.MoE)
	}
	if m.Linear != nil {
		m.Linear = new(*m.Linear)
	}
	if m.MLA != nil {
		m.MLA = new(*m.MLA)
	}
	return m
}

// formatSuffixes are the endings of repository names that tell a checkpoint's
// format, longest first where one ends another. Block -1 means the vendor's.
var formatSuffixes = []struct {
	suffix string
	format Format
	block  int
}{
	{"-fp8-dynamic", FP8, 0},
	{"-fp8-block", FP8, 128},
	{"-fp8-static-pertensor", FP8, 0},
	{"-fp8-kv", FP8, 0},
	{"-fp8", FP8, -1},
	{"-nvfp4a16", NVFP4, 0},
	{"-nvfp4", NVFP4, 0},
	{"-mxfp4", MXFP4, 0},
	{"-fp4", NVFP4, 0},
	{"-awq-int4", INT4, 0},
	{"-awq-4bit", INT4, 0},
	{"-awq", INT4, 0},
	{"-gptq-int4", INT4, 0},
	{"-gptq", INT4, 0},
	{"-int4", INT4, 0},
	{"-quantized.w4a16", INT4, 0},
	{"-w4a16", INT4, 0},
	{"-bf16", BF16, 0},
}

// splitFormat parts a repository name, in lower case and without its owner,
// from the format that its ending tells.
func splitFormat(name string) (base string, f Format, block int) {
	base = lastElem(strings.ToLower(strings.TrimRight(name, "/")))
	for _, s := range formatSuffixes {
		if b, ok := strings.CutSuffix(base, s.suffix); ok {
			return b, s.format, s.block
		}
	}
	return base, "", 0
}

func lastElem(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// nearest lists the n known repository ids with the least edit distance to base.
func nearest(base string, n int) []string {
	es := slices.Clone(entries())
	dist := func(e entry) int {
		d := stat.Distance(base, lastElem(e.ID))
		for _, a := range e.Aliases {
			d = min(d, stat.Distance(base, a))
		}
		return d
	}
	slices.SortStableFunc(es, func(a, b entry) int { return cmp.Compare(dist(a), dist(b)) })
	var ids []string
	for _, e := range es[:min(n, len(es))] {
		ids = append(ids, e.ID)
	}
	return ids
}

// Family is the family of a model by its name: what comes before the first hyphen, without
// the owner, as qwen3 of Qwen/Qwen3-14B.
func (m Model) Family() string {
	name, _, _ := strings.Cut(strings.ToLower(m.Name[strings.LastIndexByte(m.Name, '/')+1:]), "-")
	return name
}
