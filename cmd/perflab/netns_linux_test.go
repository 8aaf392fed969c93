package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"perflab/internal/test/netns"
	"perflab/internal/test/relay"
	"perflab/internal/truth"
)

// away is a truth server on a machine of its own, behind a relay on the same machine.
type away struct {
	machine, client *netns.Machine
	server          string // for who is on the machine
	relay           *relay.Relay
}

// serveTruth has a truth server answer until the test ends.
func serveTruth(t testing.TB, l net.Listener, p truth.Params) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- truth.Serve(ctx, l, p) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// recorded is what a truth server recorded, asked from a machine.
func recorded(t testing.TB, m *netns.Machine, server string) truth.Truth {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: m.Dial, DisableKeepAlives: true}}
	resp, err := client.Get("http://" + server + "/truth")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var known truth.Truth
	if err := json.NewDecoder(resp.Body).Decode(&known); err != nil {
		t.Fatal(err)
	}
	return known
}

// openAway has a truth server on one machine, to be reached from another one.
func openAway(t *testing.T, p truth.Params, up, down time.Duration) away {
	t.Helper()
	m := netns.New(t, 2, netns.Options{})
	listen := func(address string) net.Listener {
		t.Helper()
		l, err := m[0].Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := listen("127.0.0.1:0")
	serveTruth(t, l, p)
	r, err := relay.Serve(listen(m[0].At(0)), l.Addr().String(), relay.Options{
		Up: relay.Link{Delay: up}, Down: relay.Link{Delay: down}, Dial: m[0].Dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return away{m[0], m[1], l.Addr().String(), r}
}

// bench measures the server from the other machine, and gives the mean TTFT that perflab shows, and whether
// it calls the run void: on a machine busy with other tests the client may be late, and says so.
func (a away) bench(t *testing.T) (ttft time.Duration, void bool) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := a.client.Command(ctx, os.Args[0], "bench", "--base-url", "http://"+a.relay.Addr(), "--model", truth.Model, "--tokenizer", "estimate",
		"--num-prompts", "50", "--request-rate", "100", "--random-input-len", "16", "--random-output-len", "4", "--num-warmups", "0",
		"--telemetry", "off", "--out", dir)
	cmd.Env = append(os.Environ(), "PERFLAB_TEST_MAIN=1")
	out, err := cmd.CombinedOutput()
	e, ok := errors.AsType[*exec.ExitError](err)
	void = ok && e.ExitCode() == 4
	if err != nil && !void {
		t.Fatalf("perflab bench: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var summary struct {
		Completed float64  `json:"completed"`
		TTFT      *float64 `json:"mean_ttft_ms"`
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		t.Fatal(err)
	}
	if summary.TTFT == nil || summary.Completed != 50 {
		t.Fatalf("the summary has no TTFT of 50 calls: %s\n%s", text, out)
	}
	return time.Duration(*summary.TTFT * float64(time.Millisecond)), void
}

// truth is the mean TTFT that the server knows of.
func (a away) truth(t *testing.T) time.Duration {
	t.Helper()
	known := recorded(t, a.machine, a.server)
	if len(known.Requests) != 50 {
		t.Fatalf("the server knows of %d requests, want 50", len(known.Requests))
	}
	var sum int64
	for _, r := range known.Requests {
		sum += r.First - r.Received
	}
	return time.Duration(sum / int64(len(known.Requests)))
}

// TestAway measures a server over a link with a known delay: the TTFT is the server's and the delay both
// ways. It is never less; on a machine busy with other tests it may be more, which a client that is wrong
// shows each time. Tries in which relay or client were late say nothing. Not parallel to other tests.
func TestAway(t *testing.T) {
	// The threads of server and relay must not wait for each other where the kernel holds one of them up.
	before := runtime.GOMAXPROCS(8)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	p := truth.Params{TTFT: 20 * time.Millisecond, ITL: 5 * time.Millisecond, Tokens: 4}
	for _, c := range []struct {
		name     string
		up, down time.Duration
	}{{"near", 0, 0}, {"far", 3 * time.Millisecond, 2 * time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			const tries, most = 5, 500 * time.Microsecond
			var overs []time.Duration
			for range tries {
				a := openAway(t, p, c.up, c.down)
				shown, void := a.bench(t)
				known := a.truth(t)
				over := shown - known - c.up - c.down
				s := a.relay.Stats()
				late := s.Up.LateMean + s.Down.LateMean
				t.Logf("mean TTFT %s, the server's %s, delay %s: %s over; relay late by %s", shown, known, c.up+c.down, over, late)
				if over < 0 {
					t.Fatalf("mean TTFT %s, and the server's %s and the delay %s are more", shown, known, c.up+c.down)
				}
				if over <= most {
					return
				}
				if late <= most/2 && !void {
					overs = append(overs, over)
				}
			}
			if len(overs) <= tries/2 {
				t.Skip("the machine is too busy: relay or client were late in most tries")
			}
			t.Errorf("mean TTFT is more than the server's and the delay by %v in tries in which relay and client were on time, never within %s", overs, most)
		})
	}
}
