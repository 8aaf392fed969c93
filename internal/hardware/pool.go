// Package hardware knows the accelerators of a machine: how they are named, which of them
// engines may be dealt, and what the machine's tools say of them.
//
//	p, err := hardware.Visible([]string{"CUDA_VISIBLE_DEVICES"}, os.LookupEnv)
//	p, err = p.Take(nil, 2) // devices 4 and 5 of CUDA_VISIBLE_DEVICES=4,5
//
// It opens nothing itself: what runs commands, and the environment, are given to it.
package hardware

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Devices are accelerators of a machine as processes are shown them: by index, or by
// UUID (GPU-…, MIG-…).
type Devices []string

// Pool is the accelerators of a machine that engines may be dealt.
type Pool struct {
	Variable  string  // of the environment, that shows a process those dealt to it; "": there are none to deal
	Devices   Devices // nil: all that the machine has
	Inherited bool    // Devices are those that the environment shows perflab itself

	outer Devices // which Devices are indices of, where the environment narrows twice
}

// Visible is the pool that an environment gives: what its variables show this process,
// its engines may be dealt, and no more. variables are of one platform, the usual one
// first; where another is set, engines are dealt by that, for they inherit it.
func Visible(variables []string, lookup func(string) (string, bool)) (Pool, error) {
	p := Pool{Variable: variables[0]}
	for _, name := range variables {
		text, set := lookup(name)
		if !set {
			continue
		}
		devices, err := parseDevices(text)
		switch {
		case err != nil:
			return p, fmt.Errorf("%s=%s of the environment: %w", name, text, err)
		case !p.Inherited:
			p.Variable, p.Devices, p.Inherited = name, devices, true
		case name != rocr:
			return p, fmt.Errorf("%s and %s are both set in the environment, and engines would inherit one beside what they are dealt by the other: unset one", p.Variable, name)
		default:
			p.outer = devices
			for _, d := range p.Devices {
				if i, err := strconv.Atoi(d); err == nil && i >= len(devices) {
					return p, fmt.Errorf("%s of the environment names device %s of the %d that %s leaves: correct one of them", p.Variable, d, len(devices), name)
				}
			}
		}
	}
	return p, nil
}

// rocr is read by the layer below that which reads HIP_VISIBLE_DEVICES, whose indices are
// then of what it leaves.
const rocr = "ROCR_VISIBLE_DEVICES"

// parseDevices reads the value of such a variable. As drivers do, it takes -1 and what
// Slurm writes where a job has none for the end of the list.
func parseDevices(text string) (Devices, error) {
	out := Devices{}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" && strings.TrimSpace(text) == "" || word == "-1" || word == "NoDevFiles" {
			return out, nil
		}
		if err := checkDevice(word); err != nil {
			return nil, err
		}
		if slices.Contains(out, word) {
			return nil, fmt.Errorf("device %s is named twice", word)
		}
		out = append(out, word)
	}
	return out, nil
}

// checkDevice says why a word names no device.
func checkDevice(word string) error {
	if n, err := strconv.Atoi(word); err == nil && n >= 0 && strconv.Itoa(n) == word {
		return nil
	}
	if uuid, ok := strings.CutPrefix(word, "GPU-"); ok && uuid != "" {
		return nil
	}
	if uuid, ok := strings.CutPrefix(word, "MIG-"); ok && uuid != "" {
		return nil
	}
	return fmt.Errorf("%q names no device: write its index, or its UUID (GPU-..., MIG-...)", word)
}

// Validate says what keeps the devices from being dealt.
func (d Devices) Validate() error {
	for i, word := range d {
		if err := checkDevice(word); err != nil {
			return err
		}
		if slices.Contains(d[:i], word) {
			return fmt.Errorf("device %s is named twice", word)
		}
	}
	return nil
}

// Text is how a list of devices reads.
func (d Devices) Text() string { return strings.Join(d, ", ") }

// Machine is how the machine's own tools name a device of the pool.
func (p Pool) Machine(device string) string {
	if i, err := strconv.Atoi(device); err == nil && i < len(p.outer) {
		return p.outer[i]
	}
	return device
}

// Take is the pool of the devices wanted (nil: the first n), or says what the
// environment does not show of them.
func (p Pool) Take(wanted Devices, n int) (Pool, error) {
	switch {
	case wanted == nil && p.Inherited && len(p.Devices) < n:
		return p, fmt.Errorf("%s of the environment shows %s, and %d %s needed: show more, or ask for fewer", p.Variable, counted(p.Devices), n, plural(n, "is", "are"))
	case wanted == nil && p.Inherited:
		p.Devices = p.Devices[:n]
		return p, nil
	case p.Inherited:
		for _, d := range wanted {
			if !slices.Contains(p.Devices, d) {
				return p, fmt.Errorf("device %s is wanted, and %s of the environment shows %s: name one of those, or change the variable", d, p.Variable, counted(p.Devices))
			}
		}
	}
	p.Devices = wanted
	return p, nil
}

func counted(d Devices) string {
	if len(d) == 0 {
		return "no device"
	}
	return plural(len(d), "device ", "devices ") + d.Text()
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
