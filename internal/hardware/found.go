package hardware

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Inventory is what a machine's tool tells of its accelerators.
type Inventory struct {
	Devices []Found
	Holders []Holder
	Untold  string // what it does not tell and why, a clause; "" for nothing
}

// Found is an accelerator, or a part of one, as its machine's tool describes it. What the
// tool does not tell is zero.
type Found struct {
	Index     int
	UUID      string
	Name      string  // "NVIDIA H100 80GB HBM3"
	MemoryMiB float64 // in all
	Driver    string
	ClockMHz  float64 // that its processors may reach
	SetMHz    float64 // that somebody set them to
	UsualMHz  float64 // that they are set to by their maker
	PowerW    float64 // that it may take
	MostW     float64 // that its maker lets it take
	Held      Reasons // why its clocks are lowered before there is any load

	FreeMiB *float64 // of its memory, nil: not told

	MIG   bool    // it is divided into parts
	Parts []Found // those, as far as they are told
	Of    string  // UUID of the device that this is a part of, "" for a whole one
}

// Holder is a process that holds memory of a device.
type Holder struct {
	Device string // UUID or index, "" where it is not told
	PID    int
	Name   string
	MiB    float64 // 0: not told
}

// Ask runs a command on a machine and gives what it printed, also beside an error. A program
// that is not there is ErrNoTool.
type Ask func(argv ...string) (string, error)

// ErrNoTool says that a program is not there.
var ErrNoTool = errors.New("the tool that tells of them is not there")

// mib are the bytes of one.
const mib = 1 << 20

// number is a cell's, 0 where it has none: "[N/A]".
func number(cell string) float64 {
	if v := amount(cell); v != nil {
		return *v
	}
	return 0
}

// amount is a cell's number, which may be 0, nil where it has none.
func amount(cell string) *float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	if err != nil || !(v >= 0) || v > 1e15 {
		return nil
	}
	return &v
}

// is reports whether a name means the device. A UUID may be cut short, as drivers take it.
func (f Found) is(name string) bool {
	return name == strconv.Itoa(f.Index) && f.Of == "" ||
		(strings.HasPrefix(name, "GPU-") || strings.HasPrefix(name, "MIG-")) && strings.HasPrefix(f.UUID, name)
}

// Pick are those of a machine's devices and parts that names mean. Where the parts of a
// divided device are not told, one of them (MIG-…) is taken for the device.
func (in Inventory) Pick(names []string) (picked []Found, missing []string) {
	var all []Found
	for _, f := range in.Devices {
		all = append(append(all, f), f.Parts...)
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(f Found) bool { return f.is(name) })
		if i < 0 && strings.HasPrefix(name, "MIG-") {
			i = slices.IndexFunc(all, func(f Found) bool { return f.MIG && f.Parts == nil })
		}
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		picked = append(picked, all[i])
	}
	return picked, missing
}

// HeldBy reports whether the process holds memory of the device, or may: of a part the tool
// may name the device alone.
func (f Found) HeldBy(h Holder) bool {
	return h.Device == "" || h.Device == f.UUID || h.Device == f.Of || f.Of == "" && h.Device == strconv.Itoa(f.Index)
}

// Details are what a device is like beside its name: "79.6 GiB, driver 570.86.15, clock up to
// 1980 MHz, power cap 500 W of 700 W".
func (f Found) Details() string {
	var out []string
	add := func(known bool, format string, args ...any) {
		if known {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(f.MemoryMiB > 0, "%.1f GiB", f.MemoryMiB/1024)
	add(f.Driver != "", "driver %s", f.Driver)
	add(f.ClockMHz > 0, "clock up to %.0f MHz", f.ClockMHz)
	add(f.SetMHz > 0 && f.UsualMHz > 0 && f.SetMHz != f.UsualMHz, "clock set to %.0f MHz, where %.0f MHz is usual", f.SetMHz, f.UsualMHz)
	add(f.Held.Text() != "", "clocks lowered by %s", f.Held.Text())
	switch {
	case f.PowerW > 0 && f.MostW > 0 && f.PowerW != f.MostW:
		add(true, "power cap %.0f W, where %.0f W is usual", f.PowerW, f.MostW)
	case f.PowerW > 0:
		add(true, "power cap %.0f W", f.PowerW)
	}
	add(f.MIG, "divided by MIG%s", strings.TrimSuffix(" into "+f.Division(), " into "))
	return strings.Join(out, ", ")
}

// Division is what a device is divided into, as far as it is told: "2 x 1g.10gb and 1 x 3g.40gb".
func (f Found) Division() string {
	var profiles, out []string
	for _, p := range f.Parts {
		profiles = append(profiles, p.Name[strings.LastIndexByte(p.Name, ' ')+1:])
	}
	slices.SortStableFunc(profiles, cmp.Compare)
	for i := 0; i < len(profiles); {
		n := 1
		for i+n < len(profiles) && profiles[i+n] == profiles[i] {
			n++
		}
		out = append(out, fmt.Sprintf("%d x %s", n, profiles[i]))
		i += n
	}
	return strings.Join(out, " and ")
}

// Text is a process as it is told of.
func (h Holder) Text() string {
	text := fmt.Sprintf("process %d", h.PID)
	if h.Name != "" {
		text += " (" + h.Name + ")"
	}
	if h.MiB > 0 {
		text += fmt.Sprintf(" holds %.0f MiB", h.MiB)
	} else {
		text += " holds memory"
	}
	if h.Device != "" {
		text += " of device " + h.Device
	}
	return text
}

// ParseHost reads /proc/cpuinfo and /proc/meminfo, or one of them: "AMD EPYC 9654 96-Core Processor,
// 192 processors, 1133.0 GiB"; "" where they tell nothing.
func ParseHost(text string) (name, whole string) {
	processors, memory := 0, 0.0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "processor":
			processors++
		case "model name":
			name = cmp.Or(name, value)
		case "MemTotal":
			memory = number(strings.TrimSuffix(value, "kB")) / 1024 / 1024
		}
	}
	var out []string
	if name != "" {
		out = append(out, name)
	}
	if processors > 0 {
		out = append(out, fmt.Sprintf("%d %s", processors, plural(processors, "processor", "processors")))
	}
	if memory > 0 {
		out = append(out, fmt.Sprintf("%.1f GiB", memory))
	}
	return name, strings.Join(out, ", ")
}
