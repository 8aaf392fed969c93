package hardware

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// Ascend asks npu-smi.
func Ascend(ask Ask) (Inventory, error) {
	text, err := ask("npu-smi", "info")
	if err != nil {
		return Inventory{}, err
	}
	return parseAscend(text)
}

// smiVersion is of the first line of the table, which is the driver's.
var smiVersion = regexp.MustCompile(`\bnpu-smi\s.*Version:\s*(\S+)`)

// usedOf is how a cell ends with memory in MiB: "0    / 0          3416 / 65536".
var usedOf = regexp.MustCompile(`(\d+)\s*/\s*(\d+)$`)

// parseAscend reads the table of devices, two lines each, and that of the processes on them.
// A process is shown the devices by their order, also where a container has only some.
func parseAscend(text string) (in Inventory, err error) {
	driver, npu := "", ""
	order := map[string]int{} // by NPU and chip
	processes := false
	for line := range strings.Lines(text) {
		if m := smiVersion.FindStringSubmatch(line); m != nil {
			driver = m[1]
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		first := strings.Fields(cells[0])
		switch {
		case len(cells) < 3 || len(first) == 0:
		case strings.HasPrefix(cells[1], "Process id"):
			processes = true
		case processes:
			pid, err := strconv.Atoi(cells[1])
			if i, ok := order[strings.Join(first, " ")]; ok && err == nil && len(cells) > 3 {
				in.Holders = append(in.Holders, Holder{Device: strconv.Itoa(i), PID: pid, Name: cells[2], MiB: number(cells[3])})
			}
		case !digits(first[0]):
		case !strings.Contains(cells[1], ":") && len(first) == 2: // "0     910B3"
			npu = first[0]
			in.Devices = append(in.Devices, Found{Index: len(in.Devices), Name: ascend(first[1]), Driver: driver})
		case npu != "": // its chip on the bus, and the number on the machine where there is one
			f := &in.Devices[len(in.Devices)-1]
			order[npu+" "+first[0]] = f.Index
			npu = ""
			if m := usedOf.FindStringSubmatch(cells[2]); m != nil && number(m[2]) > 0 {
				f.MemoryMiB = number(m[2])
				f.FreeMiB = new(max(0, f.MemoryMiB-number(m[1])))
			}
		}
	}
	if len(in.Devices) == 0 {
		return in, errors.New("read what npu-smi prints of the devices: there is no table of them")
	}
	return in, nil
}

// ascend is a chip's name with its maker's word for all of them, which newer ones have in theirs.
func ascend(chip string) string {
	if strings.HasPrefix(chip, "Ascend") {
		return chip
	}
	return "Ascend " + chip
}

func digits(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}
