package engine

import (
	"slices"
	"strings"
	"testing"
)

// versionsOf are the versions that a command may be of: those known, one between, one that
// is newer than all, and none.
func versionsOf(e *Engine) []string {
	return append(e.Versions(), "", "nightly", "99.0")
}

// TestEverySpelling: each parameter of each engine is printed for each version, in flags
// that the version has unless Fit says that it has none.
func TestEverySpelling(t *testing.T) {
	for _, e := range All() {
		table := flagTables()[e.Name]
		for i := range e.Params {
			p := &e.Params[i]
			for _, value := range valuesOf(e, p.Name) {
				c, err := New(e.Name, "m.gguf", map[string]string{p.Name: value}, nil)
				if err != nil {
					continue // TestCommands has the sentence
				}
				for _, c.Version = range versionsOf(e) {
					rej := c.Fit()
					for _, arg := range c.Argv() {
						ref, ok := table[flagName(arg)]
						if !ok || ref.param != p || rej != nil {
							continue
						}
						if ref.def == nil || !ref.def.In(c.Version) && ref.def.lacks(c.Version) {
							t.Errorf("%s %q: %s=%s is spelled %s, which the version does not have", e.Name, c.Version, p.Name, value, arg)
						}
					}
				}
			}
		}
	}
}

// TestTakes: a choice is refused for the versions that are known not to take it.
func TestTakes(t *testing.T) {
	f := Flag{Flag: "--kernel", Kind: Choice, Choices: []string{"a", "b", "c"}, Gained: map[string]string{"b": "0.3"}, Lost: map[string]string{"a": "0.2"}, known: []string{"0.1", "0.2", "0.3", "0.5"}}
	for _, tt := range []struct {
		value   string
		in, out []string
	}{
		{"a", []string{"", "0.1", "0.2.1", "nightly"}, []string{"0.3", "0.4", "0.9"}},
		{"b", []string{"", "0.3", "0.5", "0.9"}, []string{"0.1", "0.2"}},
		{"c", []string{"", "0.1", "0.9"}, nil},
	} {
		for _, v := range tt.in {
			if !f.Takes(tt.value, v) {
				t.Errorf("%s of %q is refused", tt.value, v)
			}
		}
		for _, v := range tt.out {
			if f.Takes(tt.value, v) {
				t.Errorf("%s of %q passes", tt.value, v)
			}
		}
	}
}

// TestUnknown: flags that the catalogue does not have pass where an engine may be newer, are
// printed as they stand, and are refused where the installed engine does not list them.
func TestUnknown(t *testing.T) {
	for _, tt := range []struct {
		engine, extra, help string
		unknown, want       string
	}{
		{"vllm", "--max-num-seqs 8 --new-one 4 -1 --other=x --enforce-eager", "", "--new-one --other", ""},
		{"vllm", "--new_one 4 --other=x", "--new-one --other --enforce-eager", "--new_one --other", ""},
		{"vllm", "--new-config.depth 3", "--new-config", "--new-config.depth", ""},
		{"vllm", "--new-one 4", "--new-ones", "--new-one", "--new-one is not in this vLLM (99.0 by its own account), and perflab does not know it: write --new-ones"},
		{"vllm", "--tensor-parallel 4", "--tensor-parallel-size", "--tensor-parallel", "write --tensor-parallel-size"},
		{"sglang", "--gone yes --tp-size 2", "--tp-size --enable-metrics", "--gone", "--gone is not in this SGLang (99.0 by its own account), and perflab does not know it: leave it out"},
		{"trtllm", "--new_switch --tp_size 2", "--new_switch --tp_size", "--new_switch", ""},
		{"llamacpp", "--new-thing 3 -np 2", "--new-thing --parallel --metrics -m", "--new-thing", ""},
	} {
		extra := strings.Fields(tt.extra)
		if _, err := New(tt.engine, "m.gguf", nil, extra); err == nil {
			t.Errorf("%s %q: a flag that no version has passes where nobody asks the engine", tt.engine, tt.extra)
		}
		c, err := NewOpen(tt.engine, "m.gguf", nil, extra)
		if err != nil {
			t.Errorf("%s %q: %v", tt.engine, tt.extra, err)
			continue
		}
		if got := strings.Join(c.Unknown(), " "); got != tt.unknown {
			t.Errorf("%s %q: unknown %q, want %q", tt.engine, tt.extra, got, tt.unknown)
		}
		for _, word := range extra {
			if !strings.Contains(c.String()+" ", flagName(word)) && !slices.Contains([]string{"--max-num-seqs"}, word) {
				t.Errorf("%s %q: %q is not in %q", tt.engine, tt.extra, word, c)
			}
		}
		if got := strings.Join(c.Unmodelled(), " "); !strings.Contains(got, c.Unknown()[0]) {
			t.Errorf("%s %q: predictions do not say that they leave it out: %q", tt.engine, tt.extra, got)
		}
		if tt.help == "" {
			continue
		}
		c.Help = &Help{Engine: tt.engine, Version: "99.0", Flags: slices.Sorted(slices.Values(strings.Fields(tt.help)))}
		rej := c.Fit()
		if tt.want == "" && rej != nil || tt.want != "" && (rej == nil || !strings.HasSuffix(rej.Reason, tt.want)) {
			t.Errorf("%s %q: %v, want %q", tt.engine, tt.extra, rej, tt.want)
		}
	}
}

// TestAttentionGroups: dp and attention_dp are one flag of newer versions of SGLang, and
// two of older ones; all ways to write it are the same command.
func TestAttentionGroups(t *testing.T) {
	const head = "python3 -m sglang.launch_server --model-path M --tp-size 8 "
	for _, tt := range []struct{ version, help, line, want string }{
		{"0.5.21", "", "--dp-size 8 --enable-dp-attention", "--dp-size 8 --enable-dp-attention"},
		{"0.5.21", "", "--attn-dp-size 8", "--dp-size 8 --enable-dp-attention"},
		{"0.5.23", "", "--dp-size 8 --enable-dp-attention", "--attn-dp-size 8"},
		{"0.5.23", "", "--attention-data-parallel-size=4", "--attn-dp-size 4"},
		{"", "", "--enable-dp-attention --dp 2", "--attn-dp-size 2"},
		{"", "--dp-size --enable-dp-attention --tp-size", "--attn-dp-size 8", "--dp-size 8 --enable-dp-attention"},
	} {
		c, err := Parse(strings.Fields(head + tt.line))
		if err != nil {
			t.Fatal(err)
		}
		if c.Params[AttentionDP] != "true" || c.Count(DP) < 2 || len(c.Extra) > 0 || c.World() != 8 {
			t.Errorf("%s: %v %q, %d devices", tt.line, c.Params, c.Extra, c.World())
		}
		c.Version = tt.version
		if tt.help != "" {
			c.Help = &Help{Engine: "sglang", Flags: slices.Sorted(slices.Values(strings.Fields(tt.help)))}
		}
		if got := strings.Join(c.Argv(), " "); got != head+tt.want {
			t.Errorf("%s of %q: %s, want %s", tt.line, tt.version, got, tt.want)
		}
	}
	c, err := Parse(strings.Fields(head + "--dp-size 2 --attn-dp-size 4")) // copies, each with groups
	if err != nil || c.Params[AttentionDP] != "" || strings.Join(c.Extra, " ") != "--attn-dp-size 4" || !slices.Contains(c.Unmodelled(), "--attn-dp-size") {
		t.Errorf("%v %q %v", c.Params, c.Extra, err)
	}
}
