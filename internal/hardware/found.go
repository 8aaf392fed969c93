package hardware

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Found is an accelerator as its machine's tool describes it. What the tool does not tell
// is zero.
type Found struct {
	Index     int
	UUID      string
	Name      string  // "NVIDIA H100 80GB HBM3"
	MemoryMiB float64 // in all
	Driver    string
	ClockMHz  float64 // that its processors may reach
	PowerW    float64 // that it may take
	MostW     float64 // that its maker lets it take
	MIG       bool    // it is divided into parts
}

// Holder is a process that holds memory of a device.
type Holder struct {
	Device string // UUID, or index where the tool has no other
	PID    int
	Name   string
	MiB    float64 // 0: not told
}

var (
	// NVIDIA lists the devices, and NVIDIAHolders the processes on them.
	NVIDIA        = []string{"nvidia-smi", "--query-gpu=index,uuid,name,memory.total,driver_version,clocks.max.sm,power.limit,power.default_limit,mig.mode.current", "--format=csv,noheader,nounits"}
	NVIDIAHolders = []string{"nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory", "--format=csv,noheader,nounits"}
	// AMD lists both.
	AMD = []string{"rocm-smi", "--showproductname", "--showuniqueid", "--showmeminfo", "vram", "--showdriverversion", "--showmaxpower", "--showpids", "--json"}
)

// ParseNVIDIA reads what NVIDIA prints.
func ParseNVIDIA(text string) ([]Found, error) {
	rows, err := csvRows(text, 9)
	if err != nil {
		return nil, fmt.Errorf("read what nvidia-smi prints of the devices: %w", err)
	}
	var out []Found
	for _, c := range rows {
		index, err := strconv.Atoi(c[0])
		if err != nil {
			return nil, fmt.Errorf("read what nvidia-smi prints of the devices: %q is no index", c[0])
		}
		out = append(out, Found{
			Index: index, UUID: c[1], Name: c[2], MemoryMiB: number(c[3]), Driver: told(c[4]),
			ClockMHz: number(c[5]), PowerW: number(c[6]), MostW: number(c[7]), MIG: c[8] == "Enabled",
		})
	}
	return out, nil
}

// ParseNVIDIAHolders reads what NVIDIAHolders prints.
func ParseNVIDIAHolders(text string) ([]Holder, error) {
	rows, err := csvRows(text, 4)
	if err != nil {
		return nil, fmt.Errorf("read what nvidia-smi prints of processes: %w", err)
	}
	var out []Holder
	for _, c := range rows {
		if pid, err := strconv.Atoi(c[1]); err == nil { // of another user's container the driver may name none
			out = append(out, Holder{Device: c[0], PID: pid, Name: told(c[2]), MiB: number(c[3])})
		}
	}
	return out, nil
}

// csvRows are the lines of so many cells; one of another number is an error.
func csvRows(text string, cells int) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.LazyQuotes = -1, true, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row) != cells {
			return nil, fmt.Errorf("%q", strings.Join(row, ", "))
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
	}
	return rows, nil
}

// number is a cell's, 0 where it has none: "[N/A]".
func number(cell string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	if err != nil || !(v > 0) || v > 1e15 {
		return 0
	}
	return v
}

// told is a cell's text, "" where the tool has none.
func told(cell string) string {
	if strings.HasPrefix(cell, "[") {
		return ""
	}
	return cell
}

const mib = 1 << 20

// ParseAMD reads what AMD prints: an object a card, and one of the system.
func ParseAMD(text string) (devices []Found, holders []Holder, err error) {
	_, text, ok := strings.Cut(text, "{") // warnings may stand before it
	var cards map[string]map[string]any
	if err := json.Unmarshal([]byte("{"+text), &cards); !ok || err != nil {
		return nil, nil, errors.New("read what rocm-smi prints of the devices: it is no JSON")
	}
	system := lowered(cards["system"])
	for name, values := range cards {
		index, err := strconv.Atoi(strings.TrimPrefix(name, "card"))
		if err != nil {
			continue
		}
		v := lowered(values)
		devices = append(devices, Found{
			Index: index, UUID: v["unique id"], Name: v["card series"], Driver: system["driver version"],
			MemoryMiB: number(v["vram total memory (b)"]) / mib, PowerW: number(v["max graphics package power (w)"]),
		})
	}
	slices.SortFunc(devices, func(a, b Found) int { return cmp.Compare(a.Index, b.Index) })
	for key, value := range system { // "pid1234": "python3, 1, 12345678, 0, 0": name, devices, bytes ...
		pid, err := strconv.Atoi(strings.TrimPrefix(key, "pid"))
		cells := strings.Split(value, ",")
		if err != nil || len(cells) < 3 || number(cells[2]) == 0 {
			continue
		}
		holders = append(holders, Holder{PID: pid, Name: strings.TrimSpace(cells[0]), MiB: number(cells[2]) / mib})
	}
	slices.SortFunc(holders, func(a, b Holder) int { return cmp.Compare(a.PID, b.PID) })
	return devices, holders, nil
}

// lowered are values by their names in lower case, which changed between versions.
func lowered(values map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		out[strings.ToLower(k)] = fmt.Sprint(v)
	}
	return out
}

// is reports whether a name means the device. A UUID may be cut short, as drivers take it.
func (f Found) is(name string) bool {
	return name == strconv.Itoa(f.Index) || strings.HasPrefix(name, "GPU-") && strings.HasPrefix(f.UUID, name)
}

// Pick are those of a machine's devices that names mean. A part of a device (MIG-…) is of one
// that is divided, which is not told.
func Pick(found []Found, names []string) (picked []Found, missing []string) {
	for _, name := range names {
		i := slices.IndexFunc(found, func(f Found) bool { return f.is(name) })
		if i < 0 && strings.HasPrefix(name, "MIG-") {
			i = slices.IndexFunc(found, func(f Found) bool { return f.MIG })
		}
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		picked = append(picked, found[i])
	}
	return picked, missing
}

// Details are what a device is like beside its name: "79.6 GiB, driver 570.86.15, SM clock up to
// 1980 MHz, power cap 500 W of 700 W".
func (f Found) Details() string {
	var out []string
	if f.MemoryMiB > 0 {
		out = append(out, fmt.Sprintf("%.1f GiB", f.MemoryMiB/1024))
	}
	if f.Driver != "" {
		out = append(out, "driver "+f.Driver)
	}
	if f.ClockMHz > 0 {
		out = append(out, fmt.Sprintf("SM clock up to %.0f MHz", f.ClockMHz))
	}
	switch {
	case f.PowerW > 0 && f.MostW > 0 && f.PowerW != f.MostW:
		out = append(out, fmt.Sprintf("power cap %.0f W, where %.0f W is usual", f.PowerW, f.MostW))
	case f.PowerW > 0:
		out = append(out, fmt.Sprintf("power cap %.0f W", f.PowerW))
	}
	if f.MIG {
		out = append(out, "divided by MIG")
	}
	return strings.Join(out, ", ")
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

// ParseHost reads /proc/cpuinfo and /proc/meminfo together: "AMD EPYC 9654 96-Core Processor,
// 192 processors, 1133.0 GiB"; "" where they tell nothing.
func ParseHost(text string) (name, whole string) {
	processors, memory := 0, 0.0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "processor":
			processors++
		case "model name":
			name = value
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
