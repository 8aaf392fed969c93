package load

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestCapacity(t *testing.T) {
	for _, tt := range []struct {
		concurrent  int
		files       uint64
		ports       int
		text, doing string
	}{
		{0, 256, 28232, "", ""},
		{20, 64, 28232, "", ""}, // beside 44 others
		{212, 256, 28232, "", ""},
		{213, 256, 28232, "213 requests in flight need 257 open files, but the limit is 256", "raise it with ulimit -n 257, or set a lower limit of concurrent requests"},
		{28232, 1 << 20, 28232, "", ""},
		{28233, 1 << 20, 28232, "28233 requests in flight need as many local ports, but there are 28232",
			"widen net.ipv4.ip_local_port_range, set a lower limit of concurrent requests, or spread the load over more target addresses"},
		{28233, 1 << 20, 0, "", ""},
	} {
		var text, doing string
		if e, ok := capacity(tt.concurrent, tt.files, 44, tt.ports).(*CapacityError); ok {
			text, doing = e.Error(), e.Hint()
		}
		if text != tt.text || doing != tt.doing {
			t.Errorf("%d requests, %d files, %d ports: %q (%s)", tt.concurrent, tt.files, tt.ports, text, doing)
		}
	}
	if err := CheckCapacity(1<<40, 1); err == nil {
		t.Error("this machine holds 2^40 connections?")
	}
	if n := otherFiles(1); n > 44 { // 20 requests pass where 64 files are allowed
		t.Errorf("%d files beside the connections of a run", n)
	}
	if err := CheckCapacity(1, 1); err != nil {
		t.Error(err)
	}
}

// TestMost: so many pass, and one more does not.
func TestMost(t *testing.T) {
	for _, tt := range []struct {
		files uint64
		ports int
		n     int
		limit string
	}{
		{20_000, 28_232, 19_956, "limit on open files"},
		{20_000, 0, 19_956, "limit on open files"},
		{1 << 20, 28_232, 28_232, "number of local ports"},
		{10, 28_232, 0, "limit on open files"},
	} {
		n, limit := most(tt.files, 44, tt.ports)
		if n != tt.n || limit != tt.limit {
			t.Errorf("%d files, %d ports: %d by the %s, want %d by the %s", tt.files, tt.ports, n, limit, tt.n, tt.limit)
		}
		if n > 0 && capacity(n, tt.files, 44, tt.ports) != nil || capacity(n+1, tt.files, 44, tt.ports) == nil {
			t.Errorf("%d files, %d ports: %d is not what is allowed", tt.files, tt.ports, n)
		}
	}
	if n, limit, err := Capacity(1); n == 0 || limit == "" || err != nil || CheckCapacity(n, 1) != nil {
		t.Errorf("%d by the %s, %v", n, limit, err)
	}
}

func TestWaiting(t *testing.T) {
	for text, want := range map[string]int{
		"sockets: used 9\nTCP: inuse 5 orphan 0 tw 10012 alloc 9 mem 1\nUDP: inuse 0 mem 0\n": 10012,
		"TCP: inuse 5 orphan 0 tw": 0,
		"TCP: tw many":             0,
		"":                         0,
	} {
		if got := waiting(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if err := AwaitPorts(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := AwaitPorts(t.Context(), 1<<30); err != nil { // more than there are: connecting says so
		t.Error(err)
	}
}

func TestLiftFileLimit(t *testing.T) {
	once, err := LiftFileLimit()
	if err != nil || once == 0 {
		t.Fatalf("%d, %v", once, err)
	}
	if twice, err := LiftFileLimit(); err != nil || twice != once {
		t.Errorf("%d, then %d, %v", once, twice, err)
	}
}

func TestUsage(t *testing.T) {
	u := StartUsage()
	for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
	}
	runtime.GC()
	c := u.Stop()
	if c.Wall < 20*time.Millisecond || c.CPU <= 0 || c.Procs != runtime.GOMAXPROCS(0) {
		t.Errorf("%+v", c)
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	if c.GCPause <= 0 || c.GCMax <= 0 || c.GCMax > c.GCPause || c.GCPause > gc.PauseTotal {
		t.Errorf("%+v of all %v", c, gc.PauseTotal)
	}
	u = StartUsage()
	if c := u.Stop(); c.GCMax > c.GCPause {
		t.Errorf("the pause of an earlier collection is counted: %+v", c)
	}
}
