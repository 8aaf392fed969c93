package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/proc"
)

// Files that the kernel tells of a Linux machine in.
const (
	statFile   = "/proc/stat"
	memoryFile = "/proc/meminfo"
)

// Host samples CPU and memory of this machine. On another system than Linux it
// says that it cannot.
func Host(every time.Duration) Source {
	return func(ctx context.Context, emit Emit) {
		s := hostStream{emit: emit}
		repeat(ctx, every, func(context.Context) bool {
			for _, name := range []string{statFile, memoryFile} {
				text, err := os.ReadFile(name)
				if err != nil {
					emit(time.Now(), gauge.Reading{Source: gauge.SourceHost,
						Error: fmt.Sprintf("CPU and memory of this machine are read from %s, which %s does not have here", name, runtime.GOOS)})
					return false
				}
				s.Write(text) // which never fails
			}
			return true
		})
	}
}

// RemoteHost samples CPU and memory of a machine that commands run on, in one
// loop of its shell. The loop ends by itself when nobody reads it any more.
func RemoteHost(node string, every time.Duration, run Command) Source {
	seconds := strconv.FormatFloat(every.Seconds(), 'f', -1, 64)
	loop := "while head -n 1 " + statFile + " && head -n 5 " + memoryFile + "; do sleep " + seconds + "; done"
	return func(ctx context.Context, emit Emit) {
		err := run(ctx, []string{"sh", "-c", loop}, &hostStream{node: node, emit: emit})
		if ctx.Err() != nil {
			return
		}
		text := "the loop that reads " + statFile + " ended"
		if err != nil {
			text += ": " + err.Error()
		}
		emit(time.Now(), gauge.Reading{Source: gauge.SourceHost, Node: node, Error: text})
	}
}

// hostStream takes lines of both files as they come and emits a reading whenever
// it has those of one sample: the memory that is available comes last.
type hostStream struct {
	node string
	emit Emit

	part        []byte
	before      proc.CPU // of the sample before
	spent       proc.Spent
	known       bool // what was spent since
	memoryTotal float64
}

func (s *hostStream) Write(p []byte) (int, error) {
	s.part = append(s.part, p...)
	for {
		line, rest, ok := bytes.Cut(s.part, []byte("\n"))
		if !ok {
			break
		}
		s.part = rest
		s.line(string(line))
	}
	if len(s.part) > maxLine {
		s.part = nil
	}
	return len(p), nil
}

func (s *hostStream) line(line string) {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "cpu":
		now, ok := proc.ParseCPU([]byte(line))
		if s.spent, s.known = now.Since(s.before); ok {
			s.before = now
		}
	case "MemTotal:":
		s.memoryTotal = kibibytes(rest)
	case "MemAvailable:":
		r := gauge.Reading{Source: gauge.SourceHost, Node: s.node, Values: map[string]float64{}}
		if s.known {
			r.Values[gauge.CPUUtilization] = 1 - float64(s.spent.Idle)/float64(s.spent.All)
		}
		if s.memoryTotal > 0 {
			r.Values[gauge.MemoryTotal] = s.memoryTotal
			r.Values[gauge.MemoryUsed] = s.memoryTotal - kibibytes(rest)
		}
		s.emit(time.Now(), r)
		s.known = false
	}
}

// kibibytes is a line's figure, in bytes.
func kibibytes(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), " kB"), 64)
	if err != nil {
		return 0
	}
	return v * 1024
}
