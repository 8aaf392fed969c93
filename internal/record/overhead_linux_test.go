package record_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"perflab/internal/record"
	"perflab/internal/result"
	"perflab/internal/stat"
	"perflab/internal/truth"
)

// overheadLoads are what BenchmarkOverhead sends: so many requests at a rate, with so many tokens of a pace.
var overheadLoads = []struct {
	name                string
	calls, rate, tokens int
	itl                 time.Duration
}{
	{"alone", 200, 50, 3, 20 * time.Millisecond},
	{"1000x10", 1200, 200, 50, 100 * time.Millisecond}, // 1,000 streams of 10 tok/s: 200/s for 5 s each
	{"1000x20", 1200, 200, 100, 50 * time.Millisecond},
	{"1000x50", 1200, 200, 250, 20 * time.Millisecond},
}

// BenchmarkOverhead is what a proxy adds to the TTFT that perflab bench measures: the same load at the truth server
// directly and through the proxy, in turn, on all processors. Each iteration is one of either; use -benchtime 10x.
// The interval is the 95 % one of the mean of the differences of medians. cpu-us/event is of this process, the proxy's.
// Real-time priorities make no better figures of a busy machine: they can bring it to a stand.
func BenchmarkOverhead(b *testing.B) {
	program := filepath.Join(b.TempDir(), "perflab")
	if out, err := exec.Command("go", "build", "-o", program, "perflab/cmd/perflab").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	server, err := truth.Start(exec.Command(program, "truth-server"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	for _, load := range overheadLoads {
		b.Run(load.name, func(b *testing.B) {
			proxy := startProxy(b, server.URL)
			h := overhead{program: program, server: server, calls: load.calls, rate: load.rate,
				params: truth.Params{TTFT: 50 * time.Millisecond, ITL: load.itl, Tokens: load.tokens, NoRole: true}}
			var p50, mean, cpu []float64
			for turn := 0; b.Loop(); turn++ {
				direct := func() [2]float64 { return h.measure(b, server.URL) }
				var d, p [2]float64
				if turn%2 == 0 {
					d = direct()
				}
				before := processorTime()
				p = h.measure(b, proxy)
				cpu = append(cpu, (processorTime()-before).Seconds()*1e6/float64(load.calls*load.tokens))
				if turn%2 == 1 {
					d = direct()
				}
				p50, mean = append(p50, p[0]-d[0]), append(mean, p[1]-d[1])
				b.Logf("median TTFT %.3f ms direct, %.3f ms through the proxy; mean %.3f and %.3f", d[0], p[0], d[1], p[1])
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(stat.Mean(p50), "added-p50-ms")
			if low, high, ok := stat.MeanCI(stat.Mean(p50), stat.StdDev(p50), len(p50), 0.95); ok {
				b.ReportMetric((high-low)/2, "added-p50-±ms")
			}
			b.ReportMetric(stat.Mean(mean), "added-mean-ms")
			slices.Sort(cpu)
			b.ReportMetric(stat.Quantile(cpu, 0.5), "cpu-us/event")
		})
	}
}

type overhead struct {
	program     string
	server      *truth.Child
	calls, rate int
	params      truth.Params
}

// measure runs perflab bench at an address, and returns median and mean of its TTFT.
func (h overhead) measure(b *testing.B, url string) [2]float64 {
	b.Helper()
	if err := h.server.Set(b.Context(), h.params); err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "run")
	out, err := exec.Command(h.program, "bench", "--base-url", url, "--model", truth.Model, "--random-input-len", "32", "--random-output-len", strconv.Itoa(h.params.Tokens),
		"--num-prompts", strconv.Itoa(h.calls), "--request-rate", strconv.Itoa(h.rate), "--num-warmups", "0", "--telemetry", "off", "--out", dir).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 4) { // 4: void, as on a machine with other work
		b.Fatalf("%v: %s", err, out)
	}
	var s result.Summary
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		b.Fatal(err)
	}
	t, err := h.server.Truth(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}
	var own []float64 // what the server itself took is no part of what is added
	for _, q := range t.Requests {
		own = append(own, float64(q.First-q.Received)/1e6)
	}
	slices.Sort(own)
	median, _ := s.Get("median_ttft_ms")
	mean, ok := s.Get("mean_ttft_ms")
	if n, _ := s.Get("completed"); !ok || int(n) != h.calls || len(own) != h.calls {
		b.Fatalf("%v of %d calls succeeded: %s", n, h.calls, out)
	}
	return [2]float64{median - stat.Quantile(own, 0.5), mean - stat.Mean(own)}
}

// startProxy starts a proxy in this process, whose profile is then its own.
func startProxy(b *testing.B, target string) string {
	b.Helper()
	to, err := url.Parse(target)
	if err != nil {
		b.Fatal(err)
	}
	rec, err := record.Open(filepath.Join(b.TempDir(), "traffic.jsonl"), record.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	p := &record.Proxy{Target: to, Recorder: rec}
	go func() { done <- p.Serve(b.Context(), l) }()
	b.Cleanup(func() {
		err := <-done
		sum, closed := rec.Close()
		if err != nil || closed != nil {
			b.Error(err, closed)
		}
		b.Log(sum.Lines())
	})
	return fmt.Sprintf("http://%s", l.Addr())
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRequest is what a short request with its answer costs through the proxy, on one connection, one after the other: beside it
// what it costs without.
func BenchmarkRequest(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 52\r\n\r\n{\"usage\":{\"prompt_tokens\":32,\"completion_tokens\":1}}")
	request := []byte("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 201\r\n\r\n{\"prompt\":\"" + strings.Repeat("word ", 37) + "abc\"}")
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 1<<10)
				for got := 0; ; {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					if got += n; got >= 250 { // more than its head
						conn.Write(answer)
						got = 0
					}
				}
			}()
		}
	}()
	for _, way := range []string{"direct", "proxied"} {
		b.Run(way, func(b *testing.B) {
			addr := l.Addr().String()
			if way == "proxied" {
				addr = strings.TrimPrefix(startProxy(b, "http://"+addr), "http://")
			}
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			b.ReportAllocs()
			for b.Loop() {
				conn.Write(request)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
