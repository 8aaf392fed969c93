package doctor

import (
	"cmp"
	"context"
	"runtime"
	"strconv"
	"strings"

	"perflab/internal/hardware"
)

// Host is the machine without its accelerators.
type Host struct {
	System     string  `json:"system"` // "Debian GNU/Linux 12 (bookworm)", else the kind of system
	Kernel     string  `json:"kernel,omitempty"`
	Arch       string  `json:"arch"`
	CPU        string  `json:"cpu,omitempty"`
	CPUs       int     `json:"cpus"`                 // that this process may use
	MemoryGiB  float64 `json:"memory_gib,omitempty"` // in all; 0: not known
	FreeGiB    float64 `json:"free_gib,omitempty"`   // that programs could have now; 0: not known
	Containers bool    `json:"in_container,omitempty"`
}

func lookHost(ctx context.Context, p Probes) (func(*Report), error) {
	h := Host{System: p.Program.OS, Arch: p.Program.Arch, CPUs: p.CPUs}
	switch p.Program.OS {
	case "darwin":
		h.mac(ctx, p)
	case "windows":
		h.CPU = p.Env("PROCESSOR_IDENTIFIER")
	default:
		h.linux(p)
	}
	return func(r *Report) { r.Host = h }, nil
}

func (h *Host) linux(p Probes) {
	h.System = cmp.Or(osRelease(p), h.System)
	h.Kernel = p.line("/proc/sys/kernel/osrelease")
	cpus, _ := p.Read("/proc/cpuinfo") // what is not there tells nothing
	h.CPU, _ = hardware.ParseHost(cpus)
	memory, _ := p.Read("/proc/meminfo")
	h.MemoryGiB, h.FreeGiB = kilobytes(memory, "MemTotal"), kilobytes(memory, "MemAvailable")
	_, err := p.Read("/.dockerenv")
	h.Containers = err == nil || p.Env("KUBERNETES_SERVICE_HOST") != ""
}

// osRelease is the system's name for people.
func osRelease(p Probes) string {
	text, _ := p.Read("/etc/os-release")
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}

// kilobytes is a row of /proc/meminfo in GiB, 0 where there is none.
func kilobytes(text, row string) float64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, row+":"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			if err == nil {
				return n / (1 << 20)
			}
		}
	}
	return 0
}

func (h *Host) mac(ctx context.Context, p Probes) {
	text, _, err := p.Run(ctx, "sysctl", "-n", "machdep.cpu.brand_string", "hw.memsize", "kern.osproductversion")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err != nil || len(lines) != 3 {
		return
	}
	h.CPU, h.System = lines[0], "macOS "+lines[2]
	if n, err := strconv.ParseFloat(lines[1], 64); err == nil {
		h.MemoryGiB = n / (1 << 30)
	}
}

// usable reports whether this is the system that perflab runs engines and stamps best on.
func (r Report) usable() bool { return cmp.Or(r.Program.OS, runtime.GOOS) == "linux" }
