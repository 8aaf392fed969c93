package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// How far apart the totals of one workload are, as shares.
const (
	tokenizersApart = 0.06 // of prompt tokens: two tokenizers
	samplingApart   = 0.15 // of generated tokens: two models, or two temperatures
	sampleOutput    = 0.05 // of generated tokens, of a sample that is known
)

// Bounds of the groups that each run is compared with.
const (
	mostWorkloads   = 32
	mostDefinitions = 16
)

// workloadGroup are runs of one dataset and size with nearly equal totals.
type workloadGroup struct {
	run        *interop.Run // the first
	input, out float64      // its totals
	files      []string
}

// knownFingerprints are totals of samples of ShareGPT that are met often.
var knownFingerprints = []struct {
	input, out float64
	of         string
}{
	{217393, 200000, "vllm bench serve's sample of 1000"},
	{342058, 281412, "benchmark-runner's first 1000"},
}

// fingerprintOf names a known sample that has totals.
func fingerprintOf(input, out float64) string {
	for _, k := range knownFingerprints {
		if input == k.input && Near(out, k.out, sampleOutput) {
			return k.of
		}
	}
	return ""
}

// Near reports whether two numbers differ by less than a share of the larger.
func Near(a, b, share float64) bool { return max(a, b)-min(a, b) <= share*max(a, b) }

// workloadMismatch finds runs that have a workload's name in common, and not
// its requests.
func workloadMismatch(files []interop.File) []Finding {
	groups := map[string][]*workloadGroup{}
	var order []string
	for i := range files {
		for j := range files[i].Runs {
			r := &files[i].Runs[j]
			dataset := strings.ToLower(r.Header.Label(result.LabelDataset))
			in, out := r.Value("total_input_tokens"), r.Value("total_output_tokens")
			if dataset == "" || dataset == "random" || in == 0 || out == 0 {
				continue
			}
			key := dataset + " " + r.Text("completed")
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = grouped(groups[key], r, in, out)
		}
	}
	var found []Finding
	for _, key := range order {
		g := groups[key]
		for i := 1; i < len(g); i++ {
			a, b := g[0], g[i]
			dataset, n, _ := strings.Cut(key, " ")
			found = append(found, Finding{Type: "workload-mismatch", Severity: Warning, Place: b.run.Place,
				Text: fmt.Sprintf("%s requests of %q are two workloads and do not compare: %.0f tokens in and %.0f out here%s, %.0f and %.0f at %s%s", n, dataset,
					b.input, b.out, b.aside(), a.input, a.out, a.run.Place, a.aside())})
		}
	}
	return found
}

// aside tells of what sample a group is, and in which other files it stands.
func (g *workloadGroup) aside() string {
	var parts []string
	if len(g.files) > 1 {
		parts = append(parts, "also in "+fileList(g.files[1:]))
	}
	if of := fingerprintOf(g.input, g.out); of != "" {
		parts = append(parts, of)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// grouped adds a run to the group that it is of.
func grouped(groups []*workloadGroup, r *interop.Run, in, out float64) []*workloadGroup {
	for _, g := range groups {
		if Near(g.input, in, tokenizersApart) && Near(g.out, out, samplingApart) {
			if !slices.Contains(g.files, r.Place.File) {
				g.files = append(g.files, r.Place.File)
			}
			return groups
		}
	}
	if len(groups) == mostWorkloads {
		return groups
	}
	return append(groups, &workloadGroup{run: r, input: in, out: out, files: []string{r.Place.File}})
}

// fileList writes a few file names.
func fileList(files []string) string {
	if len(files) > 2 {
		return fmt.Sprintf("%s and %d more files", files[0], len(files)-1)
	}
	return strings.Join(files, " and ")
}

// definitionGroup are runs whose figures are made alike.
type definitionGroup struct {
	defs   map[string]result.Definition
	run    *interop.Run // the first
	client string
	files  []string
}

// definitionFamilies are the figures whose definitions are compared.
var definitionFamilies = []struct{ family, label string }{
	{"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2el", "latency"}, {"max_output_tokens_per_s", "peak output throughput"}, {"max_concurrency", "maximum concurrency"},
}

// definitionsMixed finds figures of one name that are made differently.
func definitionsMixed(files []interop.File) []Finding {
	var groups []*definitionGroup
	for i := range files {
		for j := range files[i].Runs {
			groups = sameDefinitions(groups, &files[i].Runs[j])
		}
	}
	var out []Finding
	for i, b := range groups {
		for _, a := range groups[:i] {
			var parts []string
			for _, d := range definitionFamilies {
				x, okX := a.defs[d.family]
				y, okY := b.defs[d.family]
				if okX && okY && x != y {
					parts = append(parts, fmt.Sprintf("%s (%s, there %s)", d.label, definitionName(y), definitionName(x)))
				}
			}
			if len(parts) == 0 {
				continue
			}
			out = append(out, Finding{Type: "definitions-mixed", Severity: Warning, Place: b.run.Place,
				Text: fmt.Sprintf("figures of one name do not compare between %s (%s) and %s (%s): %s", b.client, fileList(b.files), a.client, fileList(a.files), strings.Join(parts, ", "))})
		}
	}
	return out
}

// definitionName writes a definition.
func definitionName(d result.Definition) string { return string(cmp.Or(d, "perflab's")) }

// sameDefinitions adds a run to the group whose figures are made like its own.
func sameDefinitions(groups []*definitionGroup, r *interop.Run) []*definitionGroup {
	defs := map[string]result.Definition{}
	for _, d := range definitionFamilies {
		if hasFamily(r, d.family) {
			defs[d.family] = r.Definition(d.family)
		}
	}
	client := "perflab"
	if r.Header.Imported != nil {
		client = r.Header.Imported.Client
	}
	for _, g := range groups {
		if g.client == client && compatible(g.defs, defs) {
			maps.Copy(g.defs, defs)
			if !slices.Contains(g.files, r.Place.File) {
				g.files = append(g.files, r.Place.File)
			}
			return groups
		}
	}
	if len(groups) == mostDefinitions || len(defs) == 0 {
		return groups
	}
	return append(groups, &definitionGroup{defs: defs, run: r, client: client, files: []string{r.Place.File}})
}

// compatible reports whether no family has two definitions.
func compatible(a, b map[string]result.Definition) bool {
	for family, d := range b {
		if was, ok := a[family]; ok && was != d {
			return false
		}
	}
	return true
}

// hasFamily reports whether a run has a figure of a family.
func hasFamily(r *interop.Run, family string) bool {
	return slices.ContainsFunc(r.Figures, func(f interop.Figure) bool {
		return f.Name == family || strings.HasSuffix(f.Name, "_"+family+"_ms")
	})
}

// sharedBlocks finds blocks that stand in two files.
func sharedBlocks(files []interop.File) []Finding {
	type pair struct{ first, second string }
	type share struct {
		a, b  *interop.Run
		lines []string
		other bool
	}
	first := map[string]*interop.Run{}
	shares := map[pair]*share{}
	var order []pair
	for i := range files {
		for j := range files[i].Runs {
			r := &files[i].Runs[j]
			if len(r.Figures) < FewestCopied {
				continue
			}
			print := r.FigureKey()
			was := first[print]
			if was == nil {
				first[print] = r
				continue
			}
			if was.Place.File == r.Place.File {
				continue
			}
			p := pair{was.Place.File, r.Place.File}
			if shares[p] == nil {
				shares[p] = &share{a: was, b: r}
				order = append(order, p)
			}
			s := shares[p]
			s.lines = append(s.lines, fmt.Sprintf("%d = %d", r.Place.Line, was.Place.Line))
			s.other = s.other || Differ(was.Header.Label(result.LabelHardware), r.Header.Label(result.LabelHardware)) || Differ(command.ModelCore(was.Header.Model), command.ModelCore(r.Header.Model))
		}
	}
	var out []Finding
	for _, p := range order {
		s := shares[p]
		f := Finding{Type: "block-in-two-files", Severity: Note, Place: s.b.Place,
			Text: fmt.Sprintf("%s every figure of blocks of %s (lines %s)", BlocksRepeat(len(s.lines)), p.first, ShortList(s.lines))}
		if s.other {
			f.Severity = Warning
			f.Text += fmt.Sprintf(", which is of %s on %s, here %s on %s: one of the files shows the other's results",
				s.a.Header.Model, hardware(s.a), s.b.Header.Model, hardware(s.b))
		}
		out = append(out, f)
	}
	return out
}

// hardware is what a run says of its devices.
func hardware(r *interop.Run) string {
	return strings.TrimSuffix(cmp.Or(r.Header.Label(result.LabelHardware), "unnamed devices"), ".")
}

// Differ reports whether two texts are both known and not equal.
func Differ(a, b string) bool { return a != "" && b != "" && !strings.EqualFold(a, b) }

// FewestCopied is how many figures two blocks need to have in common to be
// called copies.
const FewestCopied = 6
