package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/hardware"
)

// smiFields are what is asked of nvidia-smi after the time and the device's index,
// with the gauge that each is and what makes base units of its unit.
var smiFields = []struct {
	name, gauge string
	scale       float64
}{
	{"utilization.gpu", gauge.GPUUtilization, 0.01},
	{"memory.used", gauge.MemoryUsed, 1 << 20},
	{"memory.total", gauge.MemoryTotal, 1 << 20},
	{"power.draw", gauge.GPUPower, 1},
	{"clocks.sm", gauge.GPUClock, 1e6},
	{"clocks.mem", gauge.GPUMemoryClock, 1e6},
	{"temperature.gpu", gauge.GPUTemperature, 1},
}

// smiReasons are why clocks are lowered by the gauges that say it. Others are of devices that are
// idle, or whose clocks somebody set.
var smiReasons = []struct {
	gauge string
	kind  hardware.Reasons
}{
	{gauge.ThrottlePower, hardware.ReasonPower},
	{gauge.ThrottleHW, hardware.ReasonHardware},
	{gauge.ThrottleThermal, hardware.ReasonHeat},
}

// smiTime is how nvidia-smi writes its time.
const smiTime = "2006/01/02 15:04:05.000"

// GPU samples the GPUs of a machine by nvidia-smi's stream of CSV, those of
// devices (by index or UUID; nil: all there are). Of a part of a device (MIG) it has nothing
// to tell.
func GPU(node string, every time.Duration, devices []string, run Command) Source {
	return func(ctx context.Context, emit Emit) {
		for _, reasons := range hardware.ReasonFields {
			s := &smiStream{node: node, devices: devices, reasons: reasons != "", emit: emit}
			s.named = slices.ContainsFunc(devices, func(d string) bool { return strings.HasPrefix(d, uuidPrefix) })
			err := run(ctx, smiCommand(reasons, s.named, every), s)
			if ctx.Err() != nil {
				return
			}
			if s.rows == 0 && hardware.NoField(s.other, err) {
				continue
			}
			emit(time.Now(), gauge.Reading{Source: gauge.SourceGPU, Node: node, Error: s.ended(err).Error()})
			return
		}
	}
}

// uuidPrefix begins the UUIDs of whole devices.
const uuidPrefix = "GPU-"

func smiCommand(reasons string, named bool, every time.Duration) []string {
	fields := []string{"timestamp", "index"}
	for _, f := range smiFields {
		fields = append(fields, f.name)
	}
	if reasons != "" {
		fields = append(fields, reasons)
	}
	if named {
		fields = append(fields, "uuid")
	}
	return []string{"nvidia-smi", "--query-gpu=" + strings.Join(fields, ","), "--format=csv,noheader,nounits",
		"-lms", strconv.FormatInt(max(1, every.Milliseconds()), 10)}
}

// smiStream takes the output of nvidia-smi as it comes and emits a reading a
// line. Several lines may come at once, late, where a pipe keeps them back: the
// time is theirs, moved by the least difference seen between the two clocks.
type smiStream struct {
	node    string
	devices []string
	reasons bool
	named   bool // the last field is the device's UUID, for devices has some
	emit    Emit

	part   []byte // of a line
	rows   int
	other  string        // the last line that is no row: what nvidia-smi complains of
	behind time.Duration // our clock less nvidia-smi's, the least that was seen
	paired bool
}

// maxLine bounds a line of output.
const maxLine = 4096

func (s *smiStream) Write(p []byte) (int, error) {
	now := time.Now()
	s.part = append(s.part, p...)
	var rows []timedReading
	for {
		line, rest, ok := bytes.Cut(s.part, []byte("\n"))
		if !ok {
			break
		}
		s.part = rest
		at, uuid, r, ok := s.row(string(line))
		if !ok {
			if text := strings.TrimSpace(string(line)); text != "" {
				s.other = text
			}
			continue
		}
		if d := now.Sub(at); !s.paired || d < s.behind {
			s.behind, s.paired = d, true
		}
		s.rows++
		if s.wanted(r.Index, uuid) {
			rows = append(rows, timedReading{at, r})
		}
	}
	if len(s.part) > maxLine {
		s.part = nil
	}
	for _, x := range rows {
		s.emit(now.Add(x.at.Add(s.behind).Sub(now)), x.r)
	}
	return len(p), nil
}

// wanted reports whether a device is one of those to be read. A UUID may be cut short, as
// drivers take it.
func (s *smiStream) wanted(index int, uuid string) bool {
	return s.devices == nil || slices.ContainsFunc(s.devices, func(d string) bool {
		return d == strconv.Itoa(index) || strings.HasPrefix(d, uuidPrefix) && strings.HasPrefix(uuid, d)
	})
}

// row reads a line. A field that is not a number, as "[N/A]", is missing.
func (s *smiStream) row(line string) (at time.Time, uuid string, r gauge.Reading, ok bool) {
	cells := strings.Split(line, ",")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if s.named {
		uuid, cells = cells[len(cells)-1], cells[:len(cells)-1]
	}
	want := 2 + len(smiFields)
	if s.reasons {
		want++
	}
	if len(cells) != want {
		return at, uuid, r, false
	}
	at, err := time.Parse(smiTime, cells[0])
	index, ierr := strconv.Atoi(cells[1])
	if err != nil || ierr != nil {
		return at, uuid, r, false
	}
	r = gauge.Reading{Source: gauge.SourceGPU, Node: s.node, Index: index, Values: map[string]float64{}}
	for i, f := range smiFields {
		if v, err := strconv.ParseFloat(cells[2+i], 64); err == nil {
			r.Values[f.gauge] = v * f.scale
		}
	}
	if s.reasons {
		if mask, err := strconv.ParseUint(cells[want-1], 0, 64); err == nil {
			for _, b := range smiReasons {
				r.Values[b.gauge] = 0
				if hardware.Reasons(mask)&b.kind != 0 {
					r.Values[b.gauge] = 1
				}
			}
		}
	}
	return at, uuid, r, true
}

// ended says why a stream that should go on did not.
func (s *smiStream) ended(err error) error {
	switch {
	case s.rows > 0 && err != nil:
		return fmt.Errorf("nvidia-smi stopped in the middle: %w", err)
	case s.rows > 0:
		return errors.New("nvidia-smi stopped in the middle")
	case s.other != "" && err != nil:
		return fmt.Errorf("nvidia-smi tells nothing of GPUs: %.200s (%w)", s.other, err)
	case s.other != "":
		return fmt.Errorf("nvidia-smi tells nothing of GPUs: %.200s", s.other)
	case err != nil:
		return fmt.Errorf("nvidia-smi tells nothing of GPUs: %w", err)
	}
	return errors.New("nvidia-smi tells nothing of GPUs")
}
