package hardware

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// AMD asks amd-smi, and where that does not tell, rocm-smi, which came before it.
func AMD(ask Ask) (Inventory, error) {
	in, err := amdSMI(ask)
	if err == nil {
		return in, nil
	}
	text, older := ask("rocm-smi", "--showproductname", "--showuniqueid", "--showmeminfo", "vram", "--showdriverversion", "--showmaxpower", "--showpids", "--json")
	if older == nil {
		in, older = parseROCm(text)
	}
	switch {
	case older == nil:
		return in, nil
	case errors.Is(err, ErrNoTool): // of two that fail, what the one that is there says
		return Inventory{}, older
	}
	return Inventory{}, err
}

func amdSMI(ask Ask) (Inventory, error) {
	static, err := ask("amd-smi", "static", "--json")
	if err != nil {
		return Inventory{}, err
	}
	// Further questions need rights, or a version, that the first does not: what they would
	// tell is missing without them.
	metric, _ := ask("amd-smi", "metric", "--mem-usage", "--clock", "--json")
	list, _ := ask("amd-smi", "list", "-e", "--json")
	processes, unknown := ask("amd-smi", "process", "--json")
	in, err := parseAMD(static, metric, list)
	if err != nil {
		return in, err
	}
	if unknown == nil {
		in.Holders, unknown = in.amdHolders(processes, list)
	}
	if unknown != nil {
		in.Untold = fmt.Sprintf("other processes on the devices are not known: %v", unknown)
	}
	return in, nil
}

// object is one of JSON, whose values have other forms in other versions of a tool.
type object map[string]any

// entries are a list's, which newer versions wrap in "gpu_data". Lines of warnings may stand
// before it.
func entries(text string) ([]object, error) {
	for at := 0; at < len(text); {
		rest := text[at:]
		if strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "{") {
			var list []object
			var wrapped struct {
				Data []object `json:"gpu_data"`
			}
			if json.Unmarshal([]byte(rest), &list) == nil {
				return list, nil
			}
			if json.Unmarshal([]byte(rest), &wrapped) == nil && wrapped.Data != nil {
				return wrapped.Data, nil
			}
		}
		line := strings.IndexByte(rest, '\n')
		if line < 0 {
			break
		}
		at += line + 1
	}
	return nil, errors.New("read what amd-smi prints of the devices: it is no list of them")
}

// at is what stands at a path, nil where nothing does or the tool says "N/A".
func (o object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	if v == "N/A" {
		return nil
	}
	return v
}

func (o object) text(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

// quantity is a number and its unit, which come as {"value": 750, "unit": "W"}, "750 W" or 750;
// nil where there is none.
func quantity(v any) (n *float64, unit string) {
	switch v := v.(type) {
	case float64:
		return amount(strconv.FormatFloat(v, 'g', -1, 64)), ""
	case string:
		number, unit, _ := strings.Cut(v, " ")
		return amount(number), unit
	case map[string]any:
		unit, _ = v["unit"].(string)
		n, _ = quantity(v["value"])
		return n, unit
	}
	return nil, ""
}

// memory is a quantity in MiB, whose unit is otherwise where it has none.
func memory(v any, otherwise string) *float64 {
	n, unit := quantity(v)
	scale, ok := map[string]float64{"B": 1.0 / mib, "KB": 1.0 / 1024, "KiB": 1.0 / 1024, "MB": 1, "MiB": 1, "GB": 1024, "GiB": 1024}[cmp.Or(unit, otherwise)]
	if n == nil || !ok {
		return nil
	}
	return new(*n * scale)
}

// orZero is what a pointer has, 0 where it has nothing.
func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// power is a limit in watts, which has moved and changed its name; 0 where there is none.
func (o object) power(names ...string) float64 {
	for _, name := range names {
		for _, path := range [][]string{{"limit", "ppt0", name}, {"limit", name}} {
			if n, _ := quantity(o.at(path...)); orZero(n) > 0 {
				return *n
			}
		}
	}
	return 0
}

// gpu is the number that the tool has for a device.
func (o object) gpu() (int, bool) {
	n, _ := quantity(o.at("gpu"))
	if n == nil || *n != float64(int(*n)) {
		return 0, false
	}
	return int(*n), true
}

// parseAMD reads what amd-smi prints of devices. Their numbers are those by which processes
// are shown them, where list has both: the tool counts by place on the bus, which is another
// order.
func parseAMD(static, metric, list string) (in Inventory, err error) {
	found, err := entries(static)
	if err != nil {
		return in, err
	}
	more := map[int]object{}
	now, _ := entries(metric)
	for _, o := range now {
		if i, ok := o.gpu(); ok {
			more[i] = o
		}
	}
	indices, uuids := shown(list)
	for _, o := range found {
		i, ok := o.gpu()
		if !ok {
			continue
		}
		f := Found{
			Index: i, UUID: cmp.Or(uuids[i], amdUUID(o.text("asic", "asic_serial"))), Name: o.text("asic", "market_name"),
			MemoryMiB: orZero(memory(o.at("vram", "size"), "MB")), Driver: cmp.Or(o.text("driver", "version"), o.text("driver", "driver_version")),
			PowerW: o.power("socket_power_limit", "socket_power"), MostW: o.power("max_power_limit", "max_power"),
		}
		if shown, ok := indices[i]; ok {
			f.Index = shown
		}
		m := more[i]
		clock, _ := quantity(m.at("clock", "gfx_0", "max_clk"))
		f.ClockMHz = orZero(clock)
		total, used := memory(m.at("mem_usage", "total_vram"), "MB"), memory(m.at("mem_usage", "used_vram"), "MB")
		f.MemoryMiB = cmp.Or(f.MemoryMiB, orZero(total))
		if total != nil && used != nil {
			f.FreeMiB = new(max(0, *total-*used))
		}
		in.Devices = append(in.Devices, f)
	}
	if len(in.Devices) == 0 {
		return in, errors.New("read what amd-smi prints of the devices: it names none")
	}
	slices.SortFunc(in.Devices, func(a, b Found) int { return cmp.Compare(a.Index, b.Index) })
	return in, nil
}

// shown are the numbers and UUIDs by which processes are shown the devices, by the tool's own
// numbers.
func shown(list string) (indices map[int]int, uuids map[int]string) {
	indices, uuids = map[int]int{}, map[int]string{}
	all, _ := entries(list)
	for _, o := range all {
		i, ok := o.gpu()
		if !ok {
			continue
		}
		if n, _ := quantity(o.at("hip_id")); n != nil {
			indices[i] = int(*n)
		}
		uuids[i] = o.text("hip_uuid")
	}
	return indices, uuids
}

// amdUUID is the name by which drivers take a device of a serial number, "0x…".
func amdUUID(serial string) string {
	hex, ok := strings.CutPrefix(strings.ToLower(serial), "0x")
	if !ok || hex == "" {
		return ""
	}
	return "GPU-" + strings.Repeat("0", max(0, 16-len(hex))) + hex
}

// amdHolders reads the processes of each device. Drivers name a process on every device with
// the memory that it has of all together: of one on several it is not told which.
func (in Inventory) amdHolders(text, list string) ([]Holder, error) {
	all, err := entries(text)
	if err != nil {
		return nil, err
	}
	indices, _ := shown(list)
	var out []Holder
	for _, o := range all {
		i, ok := o.gpu()
		processes, _ := o.at("process_list").([]any)
		if shown, known := indices[i]; known {
			i = shown
		}
		for _, p := range processes {
			p := object{"p": p}
			pid, _ := quantity(p.at("p", "process_info", "pid")) // a text where there is no process
			if pid == nil || !ok {
				continue
			}
			h := Holder{Device: strconv.Itoa(i), PID: int(*pid), Name: p.text("p", "process_info", "name"),
				MiB: orZero(cmp.Or(memory(p.at("p", "process_info", "memory_usage", "vram_mem"), "B"), memory(p.at("p", "process_info", "mem_usage"), "B")))}
			if k := slices.IndexFunc(out, func(b Holder) bool { return b.PID == h.PID }); k >= 0 {
				out[k].Device, out[k].MiB = "", max(out[k].MiB, h.MiB)
				continue
			}
			out = append(out, h)
		}
	}
	return out, nil
}

// parseROCm reads what rocm-smi prints: an object a card, and one of the system.
func parseROCm(text string) (in Inventory, err error) {
	_, text, ok := strings.Cut(text, "{") // warnings may stand before it
	var cards map[string]map[string]any
	if err := json.Unmarshal([]byte("{"+text), &cards); !ok || err != nil {
		return in, errors.New("read what rocm-smi prints of the devices: it is no JSON")
	}
	system := lowered(cards["system"])
	for name, values := range cards {
		index, err := strconv.Atoi(strings.TrimPrefix(name, "card"))
		if err != nil {
			continue
		}
		v := lowered(values)
		f := Found{
			Index: index, UUID: amdUUID(v["unique id"]), Name: v["card series"], Driver: system["driver version"],
			MemoryMiB: number(v["vram total memory (b)"]) / mib, PowerW: number(v["max graphics package power (w)"]),
		}
		if used := amount(v["vram total used memory (b)"]); used != nil && f.MemoryMiB > 0 {
			f.FreeMiB = new(max(0, f.MemoryMiB-*used/mib))
		}
		in.Devices = append(in.Devices, f)
	}
	slices.SortFunc(in.Devices, func(a, b Found) int { return cmp.Compare(a.Index, b.Index) })
	for key, value := range system { // "pid1234": "python3, 1, 12345678, 0, 0": name, devices, bytes ...
		pid, err := strconv.Atoi(strings.TrimPrefix(key, "pid"))
		cells := strings.Split(value, ",")
		if err != nil || len(cells) < 3 || number(cells[2]) == 0 {
			continue
		}
		in.Holders = append(in.Holders, Holder{PID: pid, Name: strings.TrimSpace(cells[0]), MiB: number(cells[2]) / mib})
	}
	slices.SortFunc(in.Holders, func(a, b Holder) int { return cmp.Compare(a.PID, b.PID) })
	return in, nil
}

// lowered are values by their names in lower case, which changed between versions.
func lowered(values map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		out[strings.ToLower(k)] = fmt.Sprint(v)
	}
	return out
}
