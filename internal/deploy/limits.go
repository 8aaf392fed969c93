package deploy

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits bound what each process of a deployment may take. The zero value leaves
// perflab's own limits.
type Limits struct {
	OpenFiles     int     `yaml:"open_files,omitempty" json:"open_files,omitempty" jsonschema:"description=Files and sockets a process may have open"`
	MemoryGiB     float64 `yaml:"memory_gib,omitempty" json:"memory_gib,omitempty" jsonschema:"description=Address space of a process; engines on GPUs map far more than they use"`
	LockedMemory  string  `yaml:"locked_memory,omitempty" json:"locked_memory,omitempty" jsonschema:"description=KiB a process may lock\\, or unlimited\\, as RDMA wants it"`
	Stack         string  `yaml:"stack,omitempty" json:"stack,omitempty" jsonschema:"description=KiB of stack\\, or unlimited"`
	CPUs          string  `yaml:"cpus,omitempty" json:"cpus,omitempty" jsonschema:"description=CPUs a process may run on\\, as taskset takes them: 0-7\\,16"`
	NoCore        bool    `yaml:"no_core,omitempty" json:"no_core,omitempty" jsonschema:"description=Write no core files: those of an engine are as large as its memory"`
	NiceIncrement int     `yaml:"nice,omitempty" json:"nice,omitempty" jsonschema:"description=Added to the processes' niceness"`
}

// Validate says what keeps the limits from being set.
func (l Limits) Validate() error {
	for name, v := range map[string]string{"locked_memory": l.LockedMemory, "stack": l.Stack} {
		if _, err := strconv.ParseUint(v, 10, 63); v != "" && v != "unlimited" && err != nil {
			return fmt.Errorf("%s %q is neither a number of KiB nor unlimited", name, v)
		}
	}
	if l.OpenFiles < 0 || l.MemoryGiB < 0 {
		return fmt.Errorf("limits cannot be negative")
	}
	if strings.Trim(l.CPUs, "0123456789,-:") != "" {
		return fmt.Errorf("cpus %q is no list such as 0-7,16", l.CPUs)
	}
	return nil
}

// wrap returns the command that sets the limits and becomes argv: a shell that
// replaces itself, so that the process keeps its id.
func (l Limits) wrap(argv []string) []string {
	var set []string
	add := func(flag, value string) { set = append(set, "ulimit -"+flag+" "+value) }
	if l.OpenFiles > 0 {
		add("n", strconv.Itoa(l.OpenFiles))
	}
	if l.MemoryGiB > 0 {
		add("v", strconv.FormatInt(int64(l.MemoryGiB*(1<<20)), 10))
	}
	if l.LockedMemory != "" {
		add("l", l.LockedMemory)
	}
	if l.Stack != "" {
		add("s", l.Stack)
	}
	if l.NoCore {
		add("c", "0")
	}
	run := []string{}
	if l.CPUs != "" {
		run = append(run, "taskset", "-c", l.CPUs)
	}
	if l.NiceIncrement != 0 {
		run = append(run, "nice", "-n", strconv.Itoa(l.NiceIncrement))
	}
	if len(set) == 0 {
		return append(run, argv...)
	}
	script := strings.Join(set, " && ") + ` && exec "$@"`
	return append(append([]string{"/bin/sh", "-c", script, "perflab-limits"}, run...), argv...)
}
