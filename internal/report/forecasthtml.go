package report

import (
	"io"
	"perflab/internal/report/plot"
	"strings"

	"perflab/internal/forecast"
)

// forecastPage is a table of predictions prepared for a reader.
type forecastPage struct {
	forecast.Table
	Banner, From string
	Columns      []string
	Loads        bool
	Cells        []forecastCells
	Common       []string
	Details      []forecastDetail
	Plots        []plot.Plot
	Front        string
}

// forecastCells are a row of the page's table.
type forecastCells struct {
	Number  int
	Label   string
	Load    string
	GPUs    string
	Refused bool
	Front   bool
	Figures []oldCell
	KV      string
	Preempt string
	SLO     string
}

// forecastDetail is a configuration with the reasons of its rows.
type forecastDetail struct {
	forecast.Configuration
	Number     int
	Deployment string
	MemoryText string
	Reasons    []forecastReason
}

type forecastReason struct {
	Load, Bottleneck, KV, SLO, Failed string
	Outside                           []string
}

// ForecastHTML writes predictions as one page that needs no other file, with
// their plots.
func ForecastHTML(w io.Writer, t forecast.Table) error {
	f := &forecastTable{t}
	d := forecastPage{
		Table: t, Banner: forecastBanner, From: f.calibration(), Loads: f.loads(), Common: f.common(),
		Plots: ForecastPlots(t), Front: f.frontSentence(),
	}
	columns := f.columns()
	for _, c := range columns {
		d.Columns = append(d.Columns, c.head)
	}
	for i := range f.Rows {
		d.Cells = append(d.Cells, f.pageCells(&f.Rows[i], columns))
	}
	for i := range f.Configurations {
		d.Details = append(d.Details, f.detail(i, d.Common))
	}
	return page(w, "forecast.html", "the predictions", d)
}

func (f *forecastTable) pageCells(r *forecast.Row, columns []forecastColumn) forecastCells {
	c := f.command(r)
	out := forecastCells{Number: r.Configuration, Label: c.Label, Load: r.Load, GPUs: filledText(c), Front: r.Front, SLO: r.SLO, Refused: r.Figures == nil}
	if out.Refused {
		return out
	}
	for _, col := range columns {
		v := oldCell{Value: "-"}
		if e, ok := col.of(r); ok {
			v.Value, v.Interval = estimate(e, col.metric)
		}
		out.Figures = append(out.Figures, v)
	}
	out.KV, out.Preempt = kvCells(r)
	return out
}

func (f *forecastTable) detail(i int, common []string) forecastDetail {
	c := f.Configurations[i]
	d := forecastDetail{Configuration: c, Number: i + 1, Deployment: deploymentText(&c), MemoryText: memoryText(&c)}
	for k := range f.Rows {
		r := &f.Rows[k]
		if r.Configuration != i+1 || r.Figures == nil {
			continue
		}
		x := forecastReason{Failed: r.Failed, Outside: ownOutside(r, common), SLO: strings.Join(r.Missed, "; ")}
		if f.loads() {
			x.Load = r.Load
		}
		if r.Bottleneck != nil {
			x.Bottleneck = r.Bottleneck.Text
		}
		if r.KV != nil {
			x.KV = kvText(r)
		}
		d.Reasons = append(d.Reasons, x)
	}
	return d
}
