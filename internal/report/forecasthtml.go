package report

import (
	"io"
	"perflab/internal/report/plot"
	"strings"
)

// forecastPage is a Forecast prepared for a reader.
type forecastPage struct {
	Forecast
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
	Figures []cell
	KV      string
	Preempt string
	SLO     string
}

// forecastDetail is a configuration with the reasons of its rows.
type forecastDetail struct {
	ForecastCommand
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
func ForecastHTML(w io.Writer, f Forecast) error {
	d := forecastPage{
		Forecast: f, Banner: forecastBanner, From: f.calibration(), Loads: f.loads(), Common: f.common(),
		Plots: ForecastPlots(f), Front: f.frontSentence(),
	}
	columns := f.columns()
	for _, c := range columns {
		d.Columns = append(d.Columns, c.head)
	}
	for i := range f.Rows {
		d.Cells = append(d.Cells, f.pageCells(&f.Rows[i], columns))
	}
	for i := range f.Commands {
		d.Details = append(d.Details, f.detail(i, d.Common))
	}
	return page(w, "forecast.html", "the predictions", d)
}

func (f *Forecast) pageCells(r *ForecastRow, columns []forecastColumn) forecastCells {
	c := f.command(r)
	out := forecastCells{Number: r.Configuration, Label: c.Label, Load: r.Load, GPUs: c.filled(), Front: r.Front, SLO: r.SLO, Refused: r.Figures == nil}
	if out.Refused {
		return out
	}
	for _, col := range columns {
		v := cell{Value: "-"}
		if e, ok := col.of(r); ok {
			v.Value, v.Interval = estimate(e, col.metric)
		}
		out.Figures = append(out.Figures, v)
	}
	out.KV, out.Preempt = r.KV.cells()
	return out
}

func (f *Forecast) detail(i int, common []string) forecastDetail {
	c := f.Commands[i]
	d := forecastDetail{ForecastCommand: c, Number: i + 1, Deployment: c.deployment(), MemoryText: c.memory()}
	for k := range f.Rows {
		r := &f.Rows[k]
		if r.Configuration != i+1 || r.Figures == nil {
			continue
		}
		x := forecastReason{Failed: r.Failed, Outside: r.own(common), SLO: strings.Join(r.Missed, "; ")}
		if f.loads() {
			x.Load = r.Load
		}
		if r.Bottleneck != nil {
			x.Bottleneck = r.Bottleneck.Text
		}
		if r.KV != nil {
			x.KV = r.KV.text()
		}
		d.Reasons = append(d.Reasons, x)
	}
	return d
}
