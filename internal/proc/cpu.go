package proc

import (
	"bytes"
	"strconv"
	"time"
)

// CPU is what all processors of a machine together have counted since it was booted. The zero
// value says that it is not known.
type CPU struct {
	Count             int // of processors; 0: not told
	all, idle, stolen int64
}

// Spent is the time of all processors together between two readings.
type Spent struct {
	All    time.Duration
	Idle   time.Duration // of it, also while something waited for a disk, which needs no processor
	Stolen time.Duration // that the host of a virtual machine gave to others
}

// ParseCPU reads /proc/stat, or its first line alone: "cpu", then ticks of user, nice, system, idle,
// iowait, irq, softirq and steal, and those of guests, which user and nice hold already. Very old
// kernels end it earlier.
func ParseCPU(stat []byte) (CPU, bool) {
	line, rest, _ := bytes.Cut(stat, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 5 || string(f[0]) != "cpu" {
		return CPU{}, false
	}
	var c CPU
	for i, text := range f[1:min(len(f), 9)] {
		ticks, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || ticks < 0 {
			return CPU{}, false
		}
		c.all += ticks
		switch i {
		case 3, 4:
			c.idle += ticks
		case 7:
			c.stolen = ticks
		}
	}
	for bytes.HasPrefix(rest, []byte("cpu")) {
		c.Count++
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	return c, c.all > 0
}

// Since is what was spent after an earlier reading; false where one of them is not known or no
// time has passed. The kernel's counters of idle time may run backwards a little.
func (c CPU) Since(before CPU) (s Spent, ok bool) {
	all := c.all - before.all
	if before.all <= 0 || all <= 0 {
		return Spent{}, false
	}
	span := func(ticks int64) time.Duration { return time.Duration(min(max(0, ticks), all)) * tick }
	return Spent{All: span(all), Idle: span(c.idle - before.idle), Stolen: span(c.stolen - before.stolen)}, true
}
