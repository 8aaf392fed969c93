package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A sourced flag is what an engine's source says of one flag or key.
type sourced struct {
	Engine   string   `json:"engine"`
	Flag     string   `json:"flag"`
	Key      bool     `json:"key,omitempty"` // of the configuration file
	Names    []string `json:"names,omitempty"`
	Type     string   `json:"type"`
	Default  string   `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Versions []string `json:"versions"` // places among the engine's sources
	Relevant bool     `json:"perf,omitempty"`
}

const (
	factsPath  = "testdata/facts.jsonl"
	sourcePath = "../../../shared/reference/engine_flags.json"
)

// sources name, by the commit that was read, the versions that the catalogue knows of the
// engines that were read by hand. The others' facts are of their wheels: see
// internal/test/catalogue.
var sources = map[string][]struct{ commit, version string }{
	"trtllm":   {{"fcd3f316", "1.0"}, {"4c05a748", "1.1"}, {"00209af1", "1.2"}, {"ea35fd67", "1.2"}, {"9e7f85f6", "1.3"}, {"00043967", "1.3"}},
	"llamacpp": {{"571d0d54", "b10000"}},
}

// read is a flag as the reading of the sources has it.
type read struct {
	Flag     string         `json:"flag"`
	Aliases  []string       `json:"aliases"`
	Negative string         `json:"negative"`
	Type     string         `json:"type"`
	Default  any            `json:"default"`
	Choices  any            `json:"choices"`
	Older    map[string]any `json:"choices_by_version"`
	Versions string         `json:"versions"`
	Relevant bool           `json:"performance_relevant"`
}

var pythonText = regexp.MustCompile(`'([^']*)'`)

// choices reads a list, or a set as Python writes it.
func choices(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, c := range v {
			out = append(out, asText(c))
		}
	case string:
		for _, m := range pythonText.FindAllStringSubmatch(v, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// plain is a JSON value as text, "" for none.
func asText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (r read) reduce(engine string, key bool) sourced {
	f := sourced{Engine: engine, Flag: r.Flag, Key: key, Type: r.Type, Default: asText(r.Default), Relevant: r.Relevant}
	f.Names = slices.Clone(r.Aliases)
	if r.Negative != "" {
		f.Names = append(f.Names, r.Negative)
	}
	f.Choices = choices(r.Choices)
	for _, v := range r.Older {
		f.Choices = append(f.Choices, choices(v)...)
	}
	for _, s := range sources[engine] {
		if strings.Contains(r.Versions, s.commit) {
			f.Versions = append(f.Versions, s.version)
		}
	}
	for _, l := range []*[]string{&f.Names, &f.Choices, &f.Versions} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
	return f
}

// readSource reduces the reading of the engines' sources to facts.
func readSource(t *testing.T, text []byte) (facts []sourced) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // 1.0 stays 1.0
	var all struct {
		Engines map[string]struct {
			Flags []read `json:"flags"`
			Keys  []read `json:"yaml_keys"`
		} `json:"engines"`
	}
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	for name, e := range all.Engines {
		if sources[name] == nil {
			continue
		}
		for _, r := range e.Flags {
			facts = append(facts, r.reduce(name, false))
		}
		for _, r := range e.Keys {
			facts = append(facts, r.reduce(name, true))
		}
	}
	slices.SortFunc(facts, func(a, b sourced) int {
		return strings.Compare(a.Engine+" "+a.Flag, b.Engine+" "+b.Flag)
	})
	return facts
}

func writeFacts(t *testing.T, facts []sourced) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, f := range facts {
		if err := enc.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func readFacts(t *testing.T) (facts []sourced) {
	t.Helper()
	text, err := os.ReadFile(factsPath)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var f sourced
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		facts = append(facts, f)
	}
	if len(facts) < 400 {
		t.Fatalf("%d facts", len(facts))
	}
	return facts
}

// TestFactsCopy holds the copy of the facts against the reading of the engines' sources,
// where that lies beside the checkout.
func TestFactsCopy(t *testing.T) {
	text, err := os.ReadFile(sourcePath)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the reading of the engines' sources is not beside this checkout: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := writeFacts(t, readSource(t, text))
	if *update {
		if err := os.WriteFile(factsPath, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(factsPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what %s says: run with -update and read the difference", factsPath, sourcePath)
	}
}

// otherKind says where the catalogue reads a value otherwise than its source is written,
// and why.
var otherKind = map[string]string{
	"llamacpp --n-gpu-layers":           "a number, auto or all",
	"llamacpp --n-gpu-layers-draft":     "a number, auto or all",
	"llamacpp --rope-scale":             "read as a float",
	"llamacpp --rope-freq-base":         "read as a float",
	"llamacpp --rope-freq-scale":        "read as a float",
	"llamacpp --poll":                   "a number from 0 to 100",
	"llamacpp --draft-p-split":          "a probability",
	"llamacpp --draft-p-min":            "a probability",
	"llamacpp --slot-prompt-similarity": "a share",
	"llamacpp --sleep-idle-seconds":     "a number",
	"llamacpp --device":                 "names of devices, with commas between",
	"llamacpp --device-draft":           "names of devices, with commas between",
	"llamacpp --main-gpu":               "a number",
}

// moreChoices are values of keys that sources of other versions than the one that was
// read take.
var moreChoices = map[string][]string{
	"trtllm moe_config.backend":               {"WIDEEP"},
	"trtllm speculative_config.decoding_type": {"AUTO", "DFlash", "DSpark", "Draft_Target", "PARD", "SA", "SaveState", "User_Provided"},
}

// later are facts of sources that were read by hand after that reading: llama.cpp's server
// page of builds from b11521 on, and TensorRT-LLM's reference of its command line of
// August 2026 or later. Defaults replace those of the reading, spellings and choices are
// added, and flags without an entry there are in the list.
var later = map[string]sourced{
	"llamacpp --port":                  {Default: "9931"},
	"llamacpp --dry-penalty-last-n":    {Default: "64"},
	"llamacpp --moe-cache-mib":         {},
	"llamacpp --spec-draft-sampling":   {},
	"trtllm --generation-config":       {},
	"trtllm --num_serve_frontends":     {},
	"trtllm --report_addr":             {},
	"trtllm --input-processor-workers": {Names: []string{"--num_input_processor_workers"}},
	"trtllm --media-load-workers":      {Names: []string{"--num_media_load_workers"}},
	"trtllm --reasoning_parser":        {Choices: []string{"kimi_k3", "poolside_v1"}},
	"trtllm --tool_parser":             {Choices: []string{"kimi_k3"}},
}

// TestFacts holds the catalogue against the copy of the facts: every flag and key, with
// spellings, kind, default, choices and versions.
func TestFacts(t *testing.T) {
	facts := readFacts(t)
	seen := map[string]bool{}
	kinds := map[string]Kind{"int": Int, "float": Float, "bool": Bool, "string": String, "json": JSON, "enum": Choice, "list": list}
	for _, f := range facts {
		id := f.Engine + " " + f.Flag
		got, ok := inCatalogue(f)
		if !ok {
			t.Errorf("%s is not in the catalogue", id)
			continue
		}
		seen[id] = true
		f.Names, f.Choices, f.Default = append(f.Names, later[id].Names...), append(f.Choices, later[id].Choices...), cmp.Or(later[id].Default, f.Default)
		slices.Sort(f.Names)
		names := slices.Sorted(slices.Values(slices.Concat(got.Aliases, got.Off)))
		if !slices.Equal(names, f.Names) {
			t.Errorf("%s: other spellings %q, want %q", id, names, f.Names)
		}
		kind := kinds[f.Type]
		if f.Engine == "llamacpp" && kind == list { // one value with commas in it
			kind = String
		}
		if _, other := otherKind[id]; other == (got.Kind == kind) {
			t.Errorf("%s is of kind %s, and its source says %s; an exception is there: %v", id, got.Kind, kind, other)
		}
		if got.Default != f.Default {
			t.Errorf("%s: default %q, want %q", id, got.Default, f.Default)
		}
		f.Choices = slices.Sorted(slices.Values(slices.Concat(f.Choices, moreChoices[id])))
		if have := slices.Sorted(slices.Values(got.Choices)); got.Kind == Choice && !slices.Equal(have, f.Choices) {
			t.Errorf("%s: choices %q, want %q", id, have, f.Choices)
		}
		if got.Relevant != f.Relevant {
			t.Errorf("%s bears on performance: %v, want %v", id, got.Relevant, f.Relevant)
		}
		for _, s := range sources[f.Engine] {
			has := slices.Contains(f.Versions, s.version)
			if f.Key && !has || f.Engine == "trtllm" && s.version == "1.0" { // what was read of these is a part
				continue
			}
			if got.In(s.version) != has {
				t.Errorf("%s in %s: %v, want %v", id, s.version, !has, has)
			}
		}
	}
	for name := range sources {
		l := flagLists()[name]
		for _, f := range l.Flags {
			if _, known := later[name+" "+f.Flag]; !known && !seen[name+" "+f.Flag] && (name != "llamacpp" || f.Since != "0.5") {
				t.Errorf("%s %s is in the catalogue without a fact", name, f.Flag)
			}
		}
		for _, k := range l.Keys { // those of other versions pass, and are not recommended
			if id := name + " " + k.Flag; !seen[id] && (k.Relevant || k.Try != nil || k.Default != "") {
				t.Errorf("%s is in the catalogue without a fact", id)
			}
		}
	}
}

func inCatalogue(f sourced) (Flag, bool) {
	l := flagLists()[f.Engine].Flags
	if f.Key {
		l = flagLists()[f.Engine].Keys
	}
	i := slices.IndexFunc(l, func(g Flag) bool { return g.Flag == f.Flag })
	if i < 0 {
		return Flag{}, false
	}
	return l[i], true
}

// TestFlags: every flag says what it is, and names others that are there.
func TestFlags(t *testing.T) {
	flagTables()
	for name, l := range flagLists() {
		for _, flags := range [][]Flag{l.Flags, l.Keys} {
			names := map[string]bool{}
			for _, f := range flags {
				names[f.Flag] = true
			}
			for _, f := range flags {
				if f.Doc == "" || f.Group == "" || f.Kind == "" {
					t.Errorf("%s %s: doc %q, group %q, kind %q", name, f.Flag, f.Doc, f.Group, f.Kind)
				}
				for _, w := range f.With {
					if !names[w.Flag] || w.Why == "" {
						t.Errorf("%s %s: interacts with %q, %q", name, f.Flag, w.Flag, w.Why)
					}
				}
				for _, v := range f.Try {
					if f.Kind == Choice && len(f.Choices) > 0 && !slices.Contains(f.Choices, v) {
						t.Errorf("%s %s: %q is worth trying and no choice", name, f.Flag, v)
					}
				}
				for _, v := range []string{f.Since, f.Until} {
					if _, ok := release(v); v != "" && !ok {
						t.Errorf("%s %s: version %q", name, f.Flag, v)
					}
				}
			}
		}
	}
}
