//go:build unix

package bus

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkSteady is 20,000 messages/s of 1 KiB for three seconds: the share of a processor that an agent, the hub and
// a leader take together, all in this process, is what a load on the same machine has less.
func BenchmarkSteady(b *testing.B) {
	a, l := pair(b)
	var arrived int
	done := make(chan struct{})
	const rate, seconds = 20_000, 3
	must[func()](b)(l.Handle(Up("*", "calls"), func(Message) {
		if arrived++; arrived == rate*seconds {
			done <- struct{}{}
			arrived = 0
		}
	}))
	data, subject := make([]byte, 1024), Up(a.ID(), "calls")
	var used, took time.Duration
	for b.Loop() {
		before, began := processor(b), time.Now()
		every := time.NewTicker(time.Millisecond)
		for sent := 0; sent < rate*seconds; <-every.C {
			for due := min(rate*seconds, int(time.Since(began).Seconds()*rate)); sent < due; sent++ {
				if err := a.Publish(subject, data); err != nil {
					b.Fatal(err)
				}
			}
		}
		every.Stop()
		<-done
		used, took = used+processor(b)-before, took+time.Since(began)
	}
	b.ReportMetric(float64(b.N*rate*seconds)/took.Seconds(), "messages/s")
	b.ReportMetric(100*used.Seconds()/took.Seconds(), "cpu-%")
}

// processor is the time that this process has had of processors.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
