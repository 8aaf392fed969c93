package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"perflab/internal/study"
)

// studyText is a study file of a name, of nothing but predictions unless more says otherwise.
func studyText(name, runtime string, more ...string) string {
	return "name: " + name + `
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8, max_concurrency: 4}
baseline: {label: vLLM, engine: vllm}
budget: {trials: 8}
runtime: ` + runtime + "\n" + strings.Join(more, "\n")
}

// TestPlaceOfStudy: what a study uses alone follows from its file and the environment.
func TestPlaceOfStudy(t *testing.T) {
	process := studyText("a", "{kind: process}")
	with := func(text, old, fresh string) string { return strings.Replace(text, old, fresh, 1) }
	hosts := "{kind: ssh, hosts: [{name: a, gpus: 1}, {name: b, address: 10.0.0.2, gpus: 1, devices: [3]}]}"
	for name, tt := range map[string]struct{ text, visible, want string }{
		"a Service":       {studyText("a", "{kind: existing, service: prod/llama}"), "", "Service prod/llama"},
		"predicted":       {studyText("a", "{kind: predicted}"), "", "no machine of its own"},
		"simulated":       {studyText("a", "{kind: simulated}"), "", "processors of this machine"},
		"process":         {process, "", "accelerators 0, 1 of this machine"},
		"shown":           {process, "4,5,6", "accelerators 4, 5 of this machine"},
		"chosen":          {with(process, "gpus: 2", "gpus: 2, devices: [2, 3]"), "", "accelerators 2, 3 of this machine"},
		"too few shown":   {process, "4", "accelerators of this machine"},
		"processors":      {with(process, "{gpu: h100-sxm, gpus: 2}", "{gpu: cpu, gpus: 1}"), "", "processors of this machine"},
		"containers":      {studyText("a", "{kind: docker, docker: {image: a}}"), "", "accelerators 0, 1 of this machine"},
		"other's engine":  {studyText("a", "{kind: docker, docker: {image: a, docker_host: 'tcp://node:2375'}}"), "", "accelerators 0, 1 of node"},
		"by a socket":     {studyText("a", "{kind: docker, docker: {image: a, docker_host: 'unix:///tmp/d.sock', address: node}}"), "", "accelerators 0, 1 of node"},
		"ssh":             {with(studyText("a", hosts), "gpus: 2}", "gpus: 2, nodes: 2}"), "", "accelerators of a; accelerators 3 of 10.0.0.2"},
		"simulated nodes": {studyText("a", "{kind: simulated, machines: [{name: a}, {name: b}]}"), "", "processors of this machine"},
		"fleet":           {studyText("a", "{kind: fleet, machines: [{name: a}, {name: b, devices: [1, 2]}]}"), "", "accelerators of a; accelerators 1, 2 of b"},
		"fleet by labels": {studyText("a", "{kind: fleet, labels: {gpu: h100}}"), "", "accelerators of the fleet"},
		"machines":        {studyText("a", "{kind: ssh, machines: [{name: a}, {name: b, devices: [1, 2]}]}"), "", "accelerators of a; accelerators 1, 2 of b"},
		"existing":        {studyText("a", "{kind: existing, urls: ['http://localhost:8000', 'https://node']}"), "", "127.0.0.1:8000; node:443"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := study.Parse("study.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			p := placeOfStudy(s, func(name string) (string, bool) {
				return tt.visible, name == "CUDA_VISIBLE_DEVICES" && tt.visible != ""
			})
			if p.Text() != tt.want {
				t.Errorf("got %s, want %s", p.Text(), tt.want)
			}
		})
	}
}

func devices(machine string, names ...string) Place { return Place{{Machine: machine, Devices: names}} }

// TestShares: two places share something or not, whichever is asked.
func TestShares(t *testing.T) {
	for _, tt := range []struct {
		a, b Place
		want bool
	}{
		{nil, nil, false},
		{nil, devices("", "0"), false},
		{devices("", "0"), devices("", "0"), true},
		{devices("", "0"), devices("", "1"), false},
		{devices("", "0", "1"), devices("", "1", "2"), true},
		{devices("", "0"), devices("node", "0"), false},
		{devices("", "0"), devices("", "GPU-5c"), true}, // nobody knows which it is
		{devices("", "GPU-5c"), devices("", "GPU-5d"), false},
		{devices("", "cpu"), devices("", "cpu"), true},
		{devices("", "cpu"), devices("", "0"), false},
		{devices("", "cpu"), devices("", "GPU-5c"), false},
		{Place{{All: true}}, devices("", "7"), true},
		{Place{{All: true}}, Place{{All: true}}, true},
		{Place{{All: true}}, devices("", "cpu"), false},
		{Place{{Machine: "a", All: true}}, Place{{Machine: "b", All: true}}, false},
		{endpoints([]string{"http://localhost:80"}), endpoints([]string{"http://127.0.0.1/"}), true},
		{endpoints([]string{"http://localhost:80"}), endpoints([]string{"http://127.0.0.1:81"}), false},
		{endpoints([]string{"http://localhost:80"}), devices("", "0"), false},
		{append(devices("a", "0"), devices("b", "0")...), devices("b", "0"), true},
	} {
		if tt.a.Shares(tt.b) != tt.want || tt.b.Shares(tt.a) != tt.want {
			t.Errorf("%s and %s: want %v", tt.a.Text(), tt.b.Text(), tt.want)
		}
	}
}

// TestPlan: who may start, in which order, and for what the others wait.
func TestPlan(t *testing.T) {
	l := func(name string, s State, order int64, p Place) *Launch {
		return &Launch{ID: name, Name: name, State: s, Order: order, Place: p}
	}
	for _, tt := range []struct {
		all    []*Launch
		atOnce int
		want   string
	}{
		{nil, 1, "[] map[] map[]"},
		{[]*Launch{l("a", Queued, 2, nil), l("b", Queued, 1, nil), l("c", Ended, 0, nil)}, 1, "[b] map[a:2 b:1] map[a:for one of the 1 that run, the most at once]"},
		{[]*Launch{l("a", Queued, 1, nil), l("b", Queued, 2, nil)}, 2, "[a b] map[a:1 b:2] map[]"},
		{[]*Launch{l("a", Running, 9, nil), l("b", Queued, 2, nil)}, 1, "[] map[b:1] map[b:for one of the 1 that run, the most at once]"},
		{[]*Launch{l("a", Running, 9, devices("", "0")), l("b", Queued, 1, devices("", "0", "1")), l("c", Queued, 2, devices("", "1")), l("d", Queued, 3, devices("", "2"))}, 9,
			"[d] map[b:1 c:2 d:3] map[b:for a, which has or gets accelerators 0 of this machine c:for b, which has or gets accelerators 0, 1 of this machine]"},
		{[]*Launch{l("a", Queued, 1, devices("", "0")), l("b", Queued, 1, devices("", "0"))}, 9, "[a] map[a:1 b:2] map[b:for a, which has or gets accelerators 0 of this machine]"},
		{[]*Launch{l("a", Running, 1, nil), l("b", Running, 1, nil), l("c", Queued, 1, nil)}, 1, "[] map[c:1] map[c:for one of the 2 that run, the most at once]"},
	} {
		p := plan(tt.all, tt.atOnce)
		if got := fmt.Sprint(p.ready, p.position, p.waits); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// TestTail: a log comes in pieces that are bounded, join without a gap, and cut no character.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := strings.Repeat("tokens/s 12.5 ± 0.3 → 日本語\n", 9000)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var joined strings.Builder
	for offset := int64(0); ; {
		c, err := tail(f, offset)
		if err != nil || len(c.Text) > mostTail || !utf8.ValidString(c.Text) || c.Offset != offset || c.Size != int64(len(text)) {
			t.Fatalf("%d bytes from %d of %d, %v", len(c.Text), c.Offset, c.Size, err)
		}
		if c.Text == "" {
			break
		}
		joined.WriteString(c.Text)
		offset = c.Next
	}
	if joined.String() != text {
		t.Error("the pieces are another text")
	}
	for offset, want := range map[int64]string{-4: "語\n", -3: "\n", -1: "\n", int64(len(text)) - 1: "\n", int64(len(text)): "", 1 << 40: ""} {
		if c, err := tail(f, offset); err != nil || c.Text != want || c.Next != int64(len(text)) {
			t.Errorf("from %d: %q to %d, %v", offset, c.Text, c.Next, err)
		}
	}
	if c, err := tail(f, -1<<40); err != nil || c.Offset != 0 || len(c.Text) < mostTail-utf8.UTFMax {
		t.Errorf("from before its start: %d bytes from %d, %v", len(c.Text), c.Offset, err)
	}
}

// FuzzTail: whatever a log holds, following it ends, and gives all of it.
func FuzzTail(f *testing.F) {
	f.Add([]byte("a\xe6\x97"), int64(0))
	f.Add([]byte("\x97\x97\x97\x97\x97"), int64(-2))
	f.Fuzz(func(t *testing.T, b []byte, from int64) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		log, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		if c, err := tail(log, from); err != nil || c.Offset < 0 || c.Next > c.Size || c.Next-c.Offset != int64(len(c.Text)) || string(b[c.Offset:c.Next]) != c.Text {
			t.Errorf("from %d: %+v, %v", from, c, err)
		}
		c, err := tail(log, 0)
		if left := len(b) - int(c.Next); err != nil || left >= utf8.UTFMax || left > 0 && len(b) <= mostTail && utf8.FullRune(b[c.Next:]) {
			t.Errorf("%d bytes are left out, %v", left, err)
		}
	})
}
