package hardware

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Reasons is nvidia-smi's mask of why a device's clocks are lowered, as the driver's library
// numbers its bits.
type Reasons uint64

// Kinds of reasons. Others are of devices that are idle, keep step with each other, or have a screen.
const (
	ReasonSetting  Reasons = 0x02        // somebody set them
	ReasonPower    Reasons = 0x04 | 0x80 // the power cap, the power brake
	ReasonHardware Reasons = 0x08
	ReasonHeat     Reasons = 0x20 | 0x40 // seen by software or hardware
)

// ReasonFields are the names of the mask, the newest first: drivers before 535 know the
// second alone, and some none.
var ReasonFields = []string{"clocks_event_reasons.active", "clocks_throttle_reasons.active", ""}

// Text names the kinds: "heat, the power cap"; "" for none of them.
func (r Reasons) Text() string {
	var out []string
	for _, k := range []struct {
		kind Reasons
		text string
	}{{ReasonHeat, "heat"}, {ReasonPower, "the power cap"}, {ReasonSetting, "a setting"}, {ReasonHardware, "the hardware"}} {
		if r&k.kind != 0 {
			out = append(out, k.text)
		}
	}
	return strings.Join(out, ", ")
}

// NoField reports whether nvidia-smi refused a query for a field that this driver does not know.
func NoField(printed string, err error) bool {
	return strings.Contains(printed+fmt.Sprint(err), "not a valid field")
}

// NVIDIA asks nvidia-smi; where that is not there, the files of the driver, which tell less.
func NVIDIA(ask Ask) (Inventory, error) {
	var in Inventory
	err := in.askNVIDIA(ask)
	if errors.Is(err, ErrNoTool) {
		return driverFiles(ask, err)
	}
	if err != nil {
		return Inventory{}, err
	}
	if slices.ContainsFunc(in.Devices, func(f Found) bool { return f.MIG }) {
		in.divide(ask)
	}
	text, err := ask("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory", "--format=csv,noheader,nounits")
	if err == nil {
		in.Holders, err = parseNVIDIAHolders(text)
	}
	if err != nil {
		in.Untold = fmt.Sprintf("other processes on the devices are not known: %v", err)
	}
	return in, nil
}

// smiColumns are asked of nvidia-smi, and how each fills a device. Applications clocks are told
// no more by drivers of today, whose cell then says that.
var smiColumns = []struct {
	field string
	fill  func(f *Found, cell string)
}{
	{"index", nil}, // must be one
	{"uuid", func(f *Found, cell string) { f.UUID = cell }},
	{"name", func(f *Found, cell string) { f.Name = told(cell) }},
	{"memory.total", func(f *Found, cell string) { f.MemoryMiB = number(cell) }},
	{"memory.free", func(f *Found, cell string) { f.FreeMiB = amount(cell) }},
	{"driver_version", func(f *Found, cell string) { f.Driver = told(cell) }},
	{"clocks.max.sm", func(f *Found, cell string) { f.ClockMHz = number(cell) }},
	{"clocks.applications.graphics", func(f *Found, cell string) { f.SetMHz = number(cell) }},
	{"clocks.default_applications.graphics", func(f *Found, cell string) { f.UsualMHz = number(cell) }},
	{"power.limit", func(f *Found, cell string) { f.PowerW = number(cell) }},
	{"power.default_limit", func(f *Found, cell string) { f.MostW = number(cell) }},
	{"mig.mode.current", func(f *Found, cell string) { f.MIG = cell == "Enabled" }},
}

func (in *Inventory) askNVIDIA(ask Ask) error {
	var fields []string
	for _, c := range smiColumns {
		fields = append(fields, c.field)
	}
	var text string
	var err error
	for _, reasons := range ReasonFields {
		names := fields
		if reasons != "" {
			names = append(slices.Clone(fields), reasons)
		}
		if text, err = ask("nvidia-smi", "--query-gpu="+strings.Join(names, ","), "--format=csv,noheader,nounits"); err == nil || !NoField(text, err) {
			break
		}
	}
	if err != nil {
		return err
	}
	in.Devices, err = parseNVIDIA(text)
	return err
}

// parseNVIDIA reads a line a device: the columns, and the mask of reasons where it was asked for.
func parseNVIDIA(text string) (out []Found, err error) {
	rows, err := csvRows(text)
	if err != nil {
		return nil, fmt.Errorf("read what nvidia-smi prints of the devices: %w", err)
	}
	for _, cells := range rows {
		if n := len(cells); n != len(smiColumns) && n != len(smiColumns)+1 {
			return nil, fmt.Errorf("read what nvidia-smi prints of the devices: %.200q", strings.Join(cells, ", "))
		}
		var f Found
		if f.Index, err = strconv.Atoi(cells[0]); err != nil {
			return nil, fmt.Errorf("read what nvidia-smi prints of the devices: %.200q is no index", cells[0])
		}
		for i, c := range smiColumns {
			if c.fill != nil {
				c.fill(&f, cells[i])
			}
		}
		if len(cells) > len(smiColumns) {
			if mask, err := strconv.ParseUint(cells[len(smiColumns)], 0, 64); err == nil {
				f.Held = Reasons(mask)
			}
		}
		out = append(out, f)
	}
	return out, nil
}

func parseNVIDIAHolders(text string) ([]Holder, error) {
	rows, err := csvRows(text)
	if err != nil {
		return nil, fmt.Errorf("read what nvidia-smi prints of processes: %w", err)
	}
	var out []Holder
	for _, c := range rows {
		if len(c) != 4 {
			return nil, fmt.Errorf("read what nvidia-smi prints of processes: %.200q", strings.Join(c, ", "))
		}
		if pid, err := strconv.Atoi(c[1]); err == nil { // of another user's container the driver may name none
			out = append(out, Holder{Device: c[0], PID: pid, Name: told(c[2]), MiB: number(c[3])})
		}
	}
	return out, nil
}

// csvRows are the lines, without the blanks around cells.
func csvRows(text string) ([][]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.LazyQuotes = -1, true, true
	rows, err := r.ReadAll()
	for _, row := range rows {
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
	}
	return rows, err
}

// told is a cell's text, "" where the tool has none.
func told(cell string) string {
	if strings.HasPrefix(cell, "[") {
		return ""
	}
	return cell
}

// divide adds the parts of the devices that are divided: nvidia-smi's list has their UUIDs and
// profiles, and the long form of its query their memory.
func (in *Inventory) divide(ask Ask) {
	list, err := ask("nvidia-smi", "-L")
	if err != nil {
		return
	}
	long, _ := ask("nvidia-smi", "-q", "-x") // without it a part is as large as its profile says
	in.addParts(list, long)
}

var (
	listedGPU  = regexp.MustCompile(`^GPU (\d+):.*\(UUID: ([^)]+)\)`)
	listedPart = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+(\d+):\s*\(UUID: ([^)]+)\)`)
	profileGB  = regexp.MustCompile(`\.(\d+)gb`) // of 1g.10gb, 1c.3g.40gb, 1g.10gb+me
)

func (in *Inventory) addParts(list, long string) {
	sizes := partSizes(long)
	var of *Found
	for line := range strings.Lines(list) {
		if m := listedGPU.FindStringSubmatch(line); m != nil {
			of = nil
			if i := slices.IndexFunc(in.Devices, func(f Found) bool { return f.UUID == m[2] }); i >= 0 {
				of = &in.Devices[i]
			}
			continue
		}
		m := listedPart.FindStringSubmatch(line)
		if m == nil || of == nil {
			continue
		}
		part := Found{Index: of.Index, UUID: m[3], Of: of.UUID, Driver: of.Driver, ClockMHz: of.ClockMHz, Held: of.Held,
			Name: strings.TrimSpace(of.Name + " MIG " + m[1])}
		if gb := profileGB.FindStringSubmatch(m[1]); gb != nil {
			part.MemoryMiB = number(gb[1]) * 1024
		}
		if s, ok := sizes[of.UUID+" "+m[2]]; ok {
			part.MemoryMiB, part.FreeMiB = number(s.total), amount(s.free)
		}
		of.Parts = append(of.Parts, part)
	}
}

type partSize struct{ total, free string }

// partSizes are the memory of parts by their device's UUID and their number in it.
func partSizes(long string) map[string]partSize {
	var doc struct {
		GPUs []struct {
			UUID  string `xml:"uuid"`
			Parts []struct {
				Index string `xml:"index"`
				Total string `xml:"fb_memory_usage>total"`
				Free  string `xml:"fb_memory_usage>free"`
			} `xml:"mig_devices>mig_device"`
		} `xml:"gpu"`
	}
	if xml.Unmarshal([]byte(long), &doc) != nil {
		return nil
	}
	out := map[string]partSize{}
	for _, g := range doc.GPUs {
		for _, p := range g.Parts {
			total, free := strings.TrimSuffix(p.Total, " MiB"), strings.TrimSuffix(p.Free, " MiB")
			if number(total) > 0 {
				out[strings.TrimSpace(g.UUID)+" "+strings.TrimSpace(p.Index)] = partSize{total, free}
			}
		}
	}
	return out
}

// driverFiles are the devices as the driver's own files name them. missing is why nvidia-smi
// did not.
func driverFiles(ask Ask, missing error) (Inventory, error) {
	text, err := ask("/bin/sh", "-c", "cat /proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information")
	in := parseDriverFiles(text)
	if err != nil || len(in.Devices) == 0 {
		return Inventory{}, missing
	}
	in.Untold = "the NVIDIA driver is loaded and nvidia-smi is not on PATH: the devices' memory, clocks and power caps, and other processes on them, are not known"
	return in, nil
}

// driverVersion is the first number with dots after the kernel module's name.
var driverVersion = regexp.MustCompile(`(?m)^NVRM version:.*?Kernel Module\D*?(?:x86_64|aarch64)?\s+(\d+(?:\.\d+)+)`)

// parseDriverFiles reads the version and one block a device. Their order is that of their
// places on the bus, as nvidia-smi numbers them.
func parseDriverFiles(text string) (in Inventory) {
	driver := ""
	if m := driverVersion.FindStringSubmatch(text); m != nil {
		driver = m[1]
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			in.Devices = append(in.Devices, Found{Index: len(in.Devices), Name: value, Driver: driver})
		case "GPU UUID":
			if n := len(in.Devices); n > 0 && !strings.Contains(value, "?") { // of a device that sleeps it is not known
				in.Devices[n-1].UUID = value
			}
		}
	}
	return in
}
