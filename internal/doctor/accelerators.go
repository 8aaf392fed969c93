package doctor

import (
	"context"
	"errors"
	"strconv"

	"perflab/internal/arch"
	"perflab/internal/hardware"
)

// Accelerator is a device that the tool of its maker tells of.
type Accelerator struct {
	Index     int      `json:"index"`
	Name      string   `json:"name"`
	Known     []string `json:"known_as,omitempty"` // names in perflab's table, as --gpu takes them
	Platform  string   `json:"platform"`
	MemoryGiB float64  `json:"memory_gib,omitempty"`
	FreeGiB   *float64 `json:"free_gib,omitempty"` // nil: not told
	Driver    string   `json:"driver,omitempty"`
	Details   string   `json:"details,omitempty"`
	Holders   []string `json:"holders,omitempty"` // processes that hold memory of it
}

// tools tell of accelerators.
var tools = []struct {
	platform arch.Platform
	program  string
	ask      func(hardware.Ask) (hardware.Inventory, error)
}{
	{arch.CUDA, "nvidia-smi", hardware.NVIDIA},
	{arch.ROCm, "amd-smi or rocm-smi", hardware.AMD},
	{arch.NPU, "npu-smi", hardware.Ascend},
}

func lookAccelerators(ctx context.Context, p Probes) (func(*Report), error) {
	var found []Accelerator
	var faults []error
	for _, t := range tools {
		in, err := t.ask(func(argv ...string) (string, error) {
			out, _, err := p.Run(ctx, argv...)
			return out, err
		})
		switch {
		case err == nil:
			for _, f := range in.Devices {
				found = append(found, accelerator(f, t.platform, in.Holders))
			}
		case !errors.Is(err, hardware.ErrNoTool):
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return func(r *Report) { r.Accelerators = append(r.Accelerators, found...) }, errors.Join(faults...)
}

// Accelerators are the devices of this machine alone, without the rest of a Report.
func Accelerators(ctx context.Context, p Probes) ([]Accelerator, error) {
	fill, err := lookAccelerators(ctx, p)
	var r Report
	fill(&r)
	return r.Accelerators, err
}

func accelerator(f hardware.Found, platform arch.Platform, holders []hardware.Holder) Accelerator {
	a := Accelerator{
		Index: f.Index, Name: f.Name, Platform: string(platform), Driver: f.Driver, MemoryGiB: f.MemoryMiB / 1024, Details: f.Details(),
		Known: knownAs(f, platform),
	}
	if f.FreeMiB != nil {
		a.FreeGiB = new(*f.FreeMiB / 1024)
	}
	for _, h := range holders {
		if f.HeldBy(h) {
			if h.Device != "" { // by the name that the device has here
				h.Device = strconv.Itoa(f.Index)
			}
			a.Holders = append(a.Holders, h.Text())
		}
	}
	return a
}

// knownAs are the rows of the table of accelerators that a device may be: those of its name, and
// where there are several, that of its memory.
func knownAs(f hardware.Found, platform arch.Platform) []string {
	var named, sized []string
	for _, a := range arch.Accelerators() {
		if a.Platform != platform || !a.Named(f.Name) {
			continue
		}
		named = append(named, a.Name)
		if gib := f.MemoryMiB / 1024; gib > 0.9*a.MemoryGiB && gib < 1.1*a.MemoryGiB {
			sized = append(sized, a.Name)
		}
	}
	if len(sized) > 0 {
		return sized
	}
	return named
}
