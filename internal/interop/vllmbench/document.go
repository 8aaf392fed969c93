package vllmbench

import (
	"fmt"
	"slices"
	"strings"
)

// Document is docs/from-vllm.md. own tells whether perflab bench has a flag, and datasets are
// those that it has.
func Document(own func(name string) bool, datasets []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, opening, Release())
	b.WriteString("\n## Flags\n\n" + head)
	for _, f := range Python() {
		writeFlag(&b, f, own)
	}
	b.WriteString("\n## Flags of the client in Rust alone\n\nvLLM's second client, which `VLLM_USE_RUST_BENCH=1` chooses, has these beside most of the above.\n\n" + head)
	for _, f := range RustOnly() {
		writeFlag(&b, f, own)
	}
	b.WriteString("\n## Flags that neither lists\n\n" + head)
	for _, f := range older() {
		writeFlag(&b, f, own)
	}
	b.WriteString("\n## Datasets\n\n")
	writeChoices(&b, "--dataset-name", Datasets(), datasets)
	b.WriteString("\n## Backends\n\n")
	writeChoices(&b, "--backend", Backends(), nil)
	return b.String()
}

const opening = `# From vllm bench serve

Write ` + "`perflab`" + ` for ` + "`vllm`" + ` in a command line of ` + "`vllm bench serve`" + `, and it runs with the same meaning:

    vllm bench serve --model Qwen/Qwen3-32B --dataset-name random --request-rate 8 --goodput ttft:500 tpot:50
    perflab bench serve --model Qwen/Qwen3-32B --dataset-name random --request-rate 8 --goodput ttft:500 tpot:50

Behind the word ` + "`serve`" + ` all of vLLM's defaults hold, a list that is given twice is the last one, and a flag that does not apply to the dataset or the arrivals has no effect, which is said on standard error.
Without the word (` + "`perflab bench --model ...`" + `) the same flags are taken, with perflab's own defaults, which the table gives where they differ; there a flag that does not apply is an error.
In both, names may have ` + "`_` for `-`" + ` or be cut short, a flag takes several values (` + "`--goodput ttft:500 tpot:50`" + `), and ` + "`--extra-body.chat_template_kwargs.enable_thinking false`" + ` is part of a JSON object, as vLLM's parser has it.
perflab's other flags may stand beside them: ` + "`--out`, `--slo`, `--html`" + `.

The exit status is perflab's: 0 when all is well, 1 when more calls failed than ` + "`--max-error-rate`" + ` allows, 4 when the figures cannot be believed, 3 when an SLO was missed, where vLLM ends with 0.

Figures under the same names are perflab's own definitions ([metrics](metrics.md#definitions-of-other-clients)): TTFT is of the first token and not of the first message without one, and a failed request is no zero.
` + "`--compat vllm`" + ` computes by vLLM's, to compare with results of before.

The tables are of vLLM %s, from its own parsers. A *same* flag means the same under the same name, one that *differs* has another name or default here, an *accepted* one
is taken and has no effect, and a *refused* one ends the command with the sentence given.
`

const head = "| vLLM | its default | perflab bench | | |\n| --- | --- | --- | --- | --- |\n"

// writeFlag writes the row of a flag. One that is refused is so until perflab bench has a
// flag of that name.
func writeFlag(b *strings.Builder, f Flag, own func(string) bool) {
	r, _ := rowOf(f.Name)
	if r.State == Refused && r.do == nil && own(f.Name) {
		r.State, r.Note = Same, ""
	}
	if r.State == Same {
		r.Ours = "`--" + f.Name + "`"
	}
	fmt.Fprintf(b, "| `--%s` | %s | %s | %s | %s |\n", f.Name, code(f.Default), r.Ours, r.State, r.Note)
}

func writeChoices(b *strings.Builder, flag string, choices []Choice, own []string) {
	b.WriteString("| vLLM's `" + flag + "` | perflab bench | | |\n| --- | --- | --- | --- |\n")
	for _, c := range choices {
		if c.State == Refused && slices.Contains(own, c.Value) {
			c.State, c.Note = Same, ""
		}
		ours := c.Ours
		if c.State == Same {
			ours = flag + " " + c.Value
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", c.Value, code(ours), c.State, c.Note)
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
