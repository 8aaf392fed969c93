package progress

import (
	"fmt"
	"strings"
	"time"
)

// Bar is a progress bar of the given width in characters.
func Bar(done, all, width int) string {
	if all <= 0 {
		return ""
	}
	n := min(max(done*width/all, 0), width)
	return "[" + strings.Repeat("=", n) + strings.Repeat(" ", width-n) + "]"
}

// Left estimates the time to go at the pace so far; empty when there is no
// pace yet.
func Left(done, all int, elapsed time.Duration) string {
	if done <= 0 || all <= done {
		return ""
	}
	d := time.Duration(float64(elapsed) / float64(done) * float64(all-done))
	return "~" + Brief(d) + " left"
}

// Brief prints a duration in two units at most.
func Brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// seconds is Brief of a number of seconds.
func seconds(s float64) string { return Brief(time.Duration(s * float64(time.Second))) }

// roughly is a duration to the minute, or of less than one to the second.
func roughly(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", s)
	case d < time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return Brief(d)
}

// counted is a number with its noun.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
