// Package report makes documents of what was measured, of studies, predictions,
// comparisons and audits, and writes them as text, Markdown or one
// self-contained HTML page.
//
//	d, err := report.Study(study, report.Options{})
//	err = report.Markdown(w, d)
//	for _, p := range report.Plots(study) {
//		// p.SVG belongs in plots/<p.Name>.svg beside the Markdown
//	}
//
// Each kind of document is a function that builds a Document of facts: sections
// of paragraphs, tables, figures and blocks of text, each for the forms that
// show it. A new kind needs no more than that. The three writers know the
// blocks and none of the kinds.
//
// Invariants: the package is pure. It opens no file, reads no clock and computes
// no figure: every number shown is a figure of a result.Summary, scaled and
// labelled by the metric table, or a gain that the study holds, written as a
// ratio. A figure that is missing is shown as missing. What a simulator made
// says SIMULATED in every form, each plot included. Labels, commands and log
// lines come from users and engines; the writers escape them for the form they
// stand in.
//
// Deliberately absent: configuration of layout, themes and templates.
package report

import (
	"cmp"
	"slices"

	"perflab/internal/block"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// Options choose what a report shows beyond its facts.
type Options struct {
	Dir    string      // of the study, as its reader's shell finds it
	Block  string      // layout of the printed blocks: vllm, the default, or gpustack
	Host   result.Host // that sent the loads, where known
	Extra  []plot.Plot // further plots, as those of the recommended run
	Repeat string      // the command that repeats the whole study, where known
}

// style is the layout of a study's blocks. A study of a latency that the
// layout leaves out shows it too, since it was judged by it.
func (o Options) style(objective result.Metric) block.Style {
	st := block.Style{Layout: o.Block}
	shown := []string{"ttft", "tpot", "itl"}
	if o.Block != block.GPUStack && objective.Family != "" && !slices.Contains(shown, objective.Family) {
		st.Sections = append(shown, objective.Family)
	}
	return st
}

// simulatedBanner says why figures are no measurement of hardware. It is empty
// when they are.
func simulatedBanner(simulated, predicted bool) string {
	switch {
	case predicted:
		return "SIMULATED: predicted by replaying the workload through a simulated engine in virtual time. " +
			"No server ran and no GPU was used; the figures say what the model of the hardware gives, not what hardware did."
	case simulated:
		return "SIMULATED: a simulated engine answered the requests and no GPU was used. " +
			"The figures say what the model of the hardware gives, not what hardware did."
	}
	return ""
}

// metric is the row of the metric table for a name. A name the table does not
// know labels itself, so that a study of a newer version can still be read.
func metric(name string) result.Metric {
	m, err := result.Lookup(name)
	if err != nil {
		return result.Metric{Name: name, Label: name, Decimals: 2}
	}
	m.Label = cmp.Or(m.Label, m.Name)
	return m
}
