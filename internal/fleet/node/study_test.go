package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/bench"
	catalogue "perflab/internal/engine"
	"perflab/internal/generator"
	"perflab/internal/lab"
	"perflab/internal/load"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/test/dockertest"
	"perflab/internal/tune"
)

// engineName is the program that this test binary stands in for when it is started under its name.
const engineName = "vllm"

// outputTokens are of each call.
const outputTokens = 8

// standIn is an engine that tells its version, its flags and, when it serves, how it was started.
func standIn() error {
	time.AfterFunc(2*time.Minute, func() { os.Exit(3) }) // one that a broken test leaves behind
	switch {
	case slices.Contains(os.Args, "--version"):
		fmt.Println("0.11.0")
		return nil
	case slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "--help") }):
		e, err := catalogue.ByName(engineName)
		if err != nil {
			return err
		}
		fmt.Println("usage: [options]\n\noptions:")
		for _, f := range e.Flags() {
			fmt.Printf("  %s\n", strings.Join(append(append([]string{f.Flag}, f.Aliases...), f.Off...), ", "))
		}
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"Qwen/Qwen3-8B"}]}`)
	})
	mux.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Join(os.Args, " ")) })
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[slices.Index(os.Args, "--port")+1])
	if err != nil {
		return err
	}
	return http.Serve(l, mux)
}

// landscape is what engines on the nodes of a test are worth.
type landscape struct {
	site  *site
	nodes map[string]float64 // factor of each one's latencies
	dies  string             // the node that dies
	end   func()             // by this
	after int                // in the load of so many

	mu    sync.Mutex
	loads map[string]int // of each node
}

// pace is the time of a call, by how the engine was started.
func pace(args string) float64 {
	if strings.Contains(args, "--max-num-seqs 512") {
		return 0.8
	}
	return 1
}

// landCrew is that of a node.
type landCrew struct {
	*landscape
	name string
}

// crew finds the node of an agent.
func (l *landscape) crew(ctx context.Context, id string) (bench.Crew, error) {
	for _, a := range l.site.there(ctx) {
		if a.ID == id {
			return &landCrew{l, a.Name}, nil
		}
	}
	return nil, fmt.Errorf("there is no agent %s", id)
}

// Load makes the calls of a load, at once, by what the engine that is there is worth.
func (c *landCrew) Load(ctx context.Context, job bench.CrewJob, emit func(result.Call)) (load.Stats, *result.Fleet, error) {
	c.mu.Lock()
	c.loads[c.name]++
	n := c.loads[c.name]
	c.mu.Unlock()
	if c.name == c.dies && n == c.after {
		c.end()
		<-ctx.Done() // until its leader knows
		return load.Stats{}, nil, context.Cause(ctx)
	}
	args, err := get(ctx, job.Spec.Targets[0]+"/args")
	if err != nil {
		return load.Stats{}, nil, err
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.name, n)
	noise := 1 + 0.004*(float64(h.Sum64()%1000)/500-1)
	each := time.Duration(float64(10*time.Millisecond) * pace(args) * c.nodes[c.name] * noise)
	agent := generator.Agent{Name: c.name, Of: 1, Clock: result.ClockKernel, Requests: job.Workload.Len(), Offset: &generator.Offset{}}
	fleet := &result.Fleet{Epoch: 1, Agents: []generator.Agent{agent}}
	if err := job.Ready(fleet); err != nil {
		return load.Stats{}, nil, err
	}
	start := time.Now()
	job.Begun(start)
	sent := time.Duration(0)
	for r := range job.Workload.All() {
		call := result.Call{
			Index: r.Index, Agent: 1, Due: sent, Ready: sent, Sent: sent, Wrote: sent, Status: 200, Finish: "length", WantIn: 8, Want: outputTokens,
			Usage: &result.Usage{Prompt: 8, Completion: outputTokens}, Class: result.OK,
		}
		for i := range outputTokens {
			call.Chunks = append(call.Chunks, result.Chunk{At: sent + time.Duration(i+1)*each, Tokens: 1})
		}
		call.End = sent + time.Duration(outputTokens)*each
		call.First, call.Headers, call.Answer = sent+each, sent+each, sent+each
		sent += time.Millisecond
		emit(call)
	}
	fleet.Agents[0].Client = &generator.Client{Wall: sent}
	fleet.Agents[0].Sent = job.Workload.Len()
	return load.Stats{Start: start}, fleet, nil
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

const overNodes = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1, check: off}
objective: {metric: mean_tpot_ms}
workloads: [{name: a, dataset_name: random, num_prompts: 40, random_input_len: 8, random_output_len: 8}]
baseline: {label: base, engine: vllm}
stages: [{name: s, try: [{label: more, set: {max_num_seqs: 512}}]}]
space: {engine: [vllm], max_num_seqs: [512], max_num_batched_tokens: [4096]}
budget: {trials: 12}
race: {rounds: 2}
bench: {num_warmups: 0, telemetry_interval_s: 0}
runtime: {kind: fleet, ready_timeout_s: 60, RUNTIME}
`

// over runs a study over nodes, of which each has a factor.
func over(t *testing.T, runtime string, nodes map[string]float64, dies string) (dir string, f outcome.Study) {
	t.Helper()
	return startSite(t).over(t, runtime, nodes, dies, func(string) Options { return Options{Processes: true} })
}

// over runs a study over nodes whose agents serve as their options say.
func (s *site) over(t *testing.T, runtime string, nodes map[string]float64, dies string, serve func(name string) Options) (dir string, f outcome.Study) {
	t.Helper()
	l := &landscape{site: s, nodes: nodes, dies: dies, after: 2, loads: map[string]int{}}
	for name := range nodes {
		end := s.startWith(t, name, map[string]string{"gpu": "h100"}, serve(name))
		if name == dies {
			l.end = func() { s.leave(name); end() }
		}
	}
	n := s.lead(t, Leader{Lease: 3 * time.Second, Crew: l.crew})
	text := strings.Replace(overNodes, "RUNTIME", runtime, 1)
	x, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "out")
	f, err = lab.Tune(t.Context(), x, []byte(text), lab.Options{Dir: dir, Fleet: n})
	if err != nil {
		t.Fatal(err)
	}
	return dir, f
}

// leave takes an agent out of those that are there.
func (s *site) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents = slices.DeleteFunc(s.agents, func(a Agent) bool { return a.Name == name })
}

// rounds is how long a study takes where each launch takes one: a launch begins when the one before it on its machine
// has ended, and all whose ends were known when it was proposed.
func rounds(t *testing.T, dir string) int {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ends, known, all := map[int]int{}, 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Proposal    *tune.Proposal
			Observation *tune.Observation
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Proposal != nil:
			ends[r.Proposal.Trial] = known + 1
			all = max(all, known+1)
		case r.Observation != nil:
			known = max(known, ends[r.Observation.Trial])
		}
	}
	return all
}

// TestStudyOverNodes: over four nodes, of which one is 8 % slower and one dies in the middle, a study recommends what it
// does on one node, in less than 0.4 of its time, and its interval has the truth.
func TestStudyOverNodes(t *testing.T) {
	t.Parallel()
	alone, one := over(t, "machines: [{name: a}]", map[string]float64{"a": 1}, "")
	dir, four := over(t, "labels: {gpu: h100}", map[string]float64{"a": 1, "b": 1.01, "c": 1.08, "d": 0.99}, "d")
	const truth = 1/0.8 - 1 // see pace
	for name, f := range map[string]outcome.Study{"one node": one, "four nodes": four} {
		if f.Recommended == nil || !strings.Contains(f.Recommended.Command, "--max-num-seqs 512") || !f.Confirmed {
			for _, r := range f.Trials {
				t.Log(r.ID, r.Machine, r.Stage, r.Label, r.Status, r.Reason)
			}
			t.Fatalf("%s: recommended %+v: %s", name, f.Recommended, f.Verdict)
		}
		if i := f.Recommended.Interval; i == nil || !(i.Low > 0 && i.Low <= truth && truth <= i.High) {
			t.Errorf("%s: the interval is %+v, and the truth %v", name, i, truth)
		}
		if len(f.Trials) > 12 {
			t.Errorf("%s: %d trials", name, len(f.Trials))
		}
	}
	if one.Recommended.Command != four.Recommended.Command {
		t.Errorf("recommended is %q on one node, and %q on four", one.Recommended.Command, four.Recommended.Command)
	}
	if a, b := rounds(t, alone), rounds(t, dir); float64(b) > 0.4*float64(a) {
		t.Errorf("four nodes take %d of the %d rounds of one", b, a)
	} else {
		t.Logf("four nodes take %d rounds, and one %d", b, a)
	}
	for _, m := range four.Machines {
		if m.Lost != (m.Name == "d") {
			t.Errorf("machine %s: lost %v", m.Name, m.Lost)
		}
		if slow := 1/1.08 - 1; m.Name == "c" && (m.Effect == nil || m.Effect.Low > slow || m.Effect.High < slow) {
			t.Errorf("machine c is 8 %% slower, and said to differ by %+v", m.Effect)
		}
	}
	var kept struct{ Machines []string }
	if b, err := os.ReadFile(filepath.Join(dir, "machines.json")); err != nil || json.Unmarshal(b, &kept) != nil || strings.Join(kept.Machines, " ") != "a b c d" {
		t.Errorf("machines.json: %v, %v", kept.Machines, err)
	}
	if i := slices.IndexFunc(four.Trials, func(r outcome.Trial) bool { return r.Status == tune.Failed }); i < 0 || four.Trials[i].Machine != "d" {
		t.Errorf("the trial of the node that died is %+v", four.Trials)
	}
}

// TestStudyInContainers: over two nodes a study starts its engines in containers there. The image that each node has is
// in its trials, and where nodes have others they are not alike, which is said.
func TestStudyInContainers(t *testing.T) {
	t.Parallel()
	const ref, sum = "registry.invalid/vllm:v1", "c0ffee"
	for name, sums := range map[string][2]string{"alike": {sum, sum}, "not alike": {sum, "decaf0"}} {
		engines := map[string]*dockertest.Engine{}
		for i, node := range []string{"a", "b"} {
			engines[node] = dockertest.Start(t, dockertest.Image{Ref: ref, Remote: true, Sum: sums[i]})
		}
		runtime := `labels: {gpu: h100}, docker: {image: "` + ref + `"}`
		_, f := startSite(t).over(t, runtime, map[string]float64{"a": 1, "b": 1.01}, "", func(node string) Options { return inContainers(engines[node]) })
		if f.Recommended == nil || !strings.Contains(f.Recommended.Command, "--max-num-seqs 512") {
			t.Errorf("%s: recommended %+v: %s", name, f.Recommended, f.Verdict)
		}
		measured := map[string]int{}
		for _, r := range f.Trials {
			if want := engines[r.Machine].Digest(ref); r.Status != tune.Measured || r.Image != want {
				t.Errorf("%s: trial %d on %s is %s (%s) of image %s, want %s", name, r.ID, r.Machine, r.Status, r.Reason, r.Image, want)
			}
			measured[r.Machine]++
		}
		if measured["a"] == 0 || measured["b"] == 0 {
			t.Errorf("%s: trials %v", name, measured)
		}
		notes := strings.Join(f.Notes, "\n")
		if said := strings.Contains(notes, "The machines are not alike (a: image registry.invalid/vllm@sha256:c0ffee; b: image registry.invalid/vllm@sha256:decaf0)"); said != (name == "not alike") {
			t.Errorf("%s: notes\n%s", name, notes)
		}
		for node, e := range engines {
			if left := e.Containers(); len(left) > 0 {
				t.Errorf("%s: on %s are left %+v", name, node, left)
			}
		}
		if !strings.Contains(f.Method, "in a container on a machine of the fleet") {
			t.Errorf("method %q", f.Method)
		}
	}
}
