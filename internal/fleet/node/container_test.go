package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/fleet/bus"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

const ref = "registry.invalid/engines/fake:v1"

// inContainers is an agent's options for a stand-in of the Docker Engine.
func inContainers(e *dockertest.Engine) Options {
	return Options{Containers: docker.Node{ID: "agent", Host: e.Host, Allow: docker.Allow{Images: []string{"registry.invalid/*"}}}}
}

// boxes are containers of the stand-in's image.
func boxes(t *testing.T, s docker.Settings) *deploy.Containers {
	t.Helper()
	s.Image = ref
	c, err := s.OnNode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// hasty is a runtime that waits for little.
var hasty = deploy.Process{Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond}

// TestContainers: containers of a node are a runtime as any other.
func TestContainers(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	e := dockertest.Start(t, dockertest.Image{Ref: ref, Entrypoint: []string{"never", "run"}})
	s.startWith(t, "a", nil, inContainers(e))
	n := s.lead(t, Leader{Lease: time.Minute})
	t.Run("suite", func(t *testing.T) {
		deploytest.Run(t, func(t *testing.T) deploy.Runtime { return n.On("a", hasty, boxes(t, docker.Settings{})) })
	})
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("left are %+v", left)
	}
}

// TestContainerCommand: commands run in containers of the image, with what the leader's environment has, and none is left.
func TestContainerCommand(t *testing.T) {
	t.Setenv("PERFLAB_TEST_TOKEN", "hf_of-the-leader")
	s := startSite(t)
	e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: true})
	s.startWith(t, "a", nil, inContainers(e))
	var told []string
	c := boxes(t, docker.Settings{Env: []string{"PERFLAB_TEST_TOKEN"}})
	c.Progress = func(text string) { told = append(told, text) }
	r := s.lead(t, Leader{Lease: time.Minute}).On("a", hasty, c).(*Runtime)
	if _, ok := r.Resolved(); ok {
		t.Error("an image is known before it is used")
	}
	var out strings.Builder
	if err := r.Command(t.Context(), "a", []string{"sh", "-c", "echo $PERFLAB_TEST_TOKEN; exit 3"}, &out); out.String() != "hf_of-the-leader\n" {
		t.Errorf("prints %q, %v", out.String(), err)
	} else if exit, ok := errors.AsType[*deploy.ExitError](err); !ok || exit.Code != 3 {
		t.Errorf("%v, want status 3", err)
	}
	if image, _ := r.Resolved(); image != e.Digest(ref) || !strings.Contains(fmt.Sprint(told), "pull "+ref) {
		t.Errorf("the image is %q, of the pull is told %q", image, told)
	}
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("left are %+v", left)
	}
	if err := r.Reach(t.Context()); err != nil {
		t.Errorf("reach: %v", err)
	}
	e.Down()
	if infra, ok := errors.AsType[*deploy.InfraError](r.Reach(t.Context())); !ok || !strings.Contains(infra.Hint(), "start Docker there") {
		t.Errorf("reach without Docker: %v", infra)
	}
}

// TestNotAllowed: an agent starts engines as it was told to, and in no other way.
func TestNotAllowed(t *testing.T) {
	s := startSite(t)
	e := dockertest.Start(t, dockertest.Image{Ref: ref}, dockertest.Image{Ref: "other/x:v1"})
	s.startWith(t, "boxes", nil, inContainers(e))
	s.start(t, "processes", nil)
	n := s.lead(t, Leader{Lease: time.Minute})
	other, err := docker.Settings{Image: "other/x:v1"}.OnNode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rt         deploy.Runtime
		want, help string
	}{
		{n.On("boxes", hasty, nil), "its agent starts engines in containers alone", "--engines=process,docker"},
		{n.On("processes", hasty, boxes(t, docker.Settings{})), "its agent starts engines as processes alone", "--engines=docker and --image"},
		{n.On("boxes", hasty, &other), "on node boxes: its agent does not allow the image other/x:v1", "--image other/x:v1"},
		{n.On("boxes", hasty, boxes(t, docker.Settings{Privileged: true})), "privileged=true", "--docker privileged=true"},
	} {
		_, err := tt.rt.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
		command := tt.rt.(deploy.Commander).Command(t.Context(), "", []string{"true"}, io.Discard)
		for what, err := range map[string]error{"start": err, "command": command} {
			infra, ok := errors.AsType[*deploy.InfraError](err)
			if !ok || !infra.Lasting || !strings.Contains(err.Error(), tt.want) || !strings.Contains(infra.Hint(), tt.help) {
				t.Errorf("%s: %v, want %s", what, err, tt.want)
			}
		}
	}
	if q := e.Requests(); strings.Contains(strings.Join(q, " "), "create") {
		t.Errorf("the Docker Engine was asked for %q", q)
	}
}

// TestOneImage: what a tag means is found once in a study, also when its leader loses the node and takes it again, and anew
// in the next study.
func TestOneImage(t *testing.T) {
	s := startSite(t)
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s.startWith(t, "a", nil, inContainers(e))
	first := e.Digest(ref)
	image := func(n *Nodes) string {
		t.Helper()
		r := n.On("a", hasty, boxes(t, docker.Settings{})).(*Runtime)
		if err := r.Command(t.Context(), "", []string{"true"}, io.Discard); err != nil {
			t.Fatal(err)
		}
		got, _ := r.Resolved()
		return got
	}
	n := s.lead(t, Leader{Lease: time.Minute})
	if got := image(n); got != first {
		t.Errorf("the image is %s, want %s", got, first)
	}
	e.Retag(ref)
	n.node("a").leave()
	if got := image(n); got != first {
		t.Errorf("taken again, the image is %s, want %s", got, first)
	}
	n.Close()
	if got := image(s.lead(t, Leader{Lease: time.Minute})); got != e.Digest(ref) || got == first {
		t.Errorf("in the next study the image is %s, want %s", got, e.Digest(ref))
	}
}

// emptied waits until a stand-in has no container, and fails when that takes longer than a bound.
func emptied(t *testing.T, e *dockertest.Engine, within time.Duration) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(within); len(e.Containers()) > 0; <-look.C {
		if time.Now().After(end) {
			t.Fatalf("containers %+v are there after %v", e.Containers(), within)
		}
	}
}

// TestContainersOfTwoLeaders: containers of a holder end before the next one's first order is done, and what an
// earlier agent left, too.
func TestContainersOfTwoLeaders(t *testing.T) {
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := newServer("a", inContainers(e))
	s.o.Dir = t.TempDir()
	t.Cleanup(s.close)
	e.Run("left", ref, []string{"sleep", "60"}, map[string]string{"perflab.agent": "agent", "perflab.deployment": "x/0", "perflab.process": "replica-0"})
	got, err := give[held](s, wordHold, 5, holdOrder{Lease: time.Minute})
	if err != nil || len(got.Ended) != 1 || got.Ended[0] != (leftover{"x/0", "replica-0"}) || len(e.Containers()) > 0 {
		t.Fatalf("the first holder finds %+v, %v; left %+v", got, err, e.Containers())
	}
	spawnIn(t, s, 5, 1, boxes(t, docker.Settings{}).Settings)
	got, err = give[held](s, wordHold, 7, holdOrder{Lease: time.Minute})
	if err != nil || len(got.Ended) != 1 || got.Ended[0].Name != "replica-0" || len(e.Containers()) > 0 {
		t.Fatalf("the second holder finds %+v, %v; left %+v", got, err, e.Containers())
	}
	if _, err := give[stopped](s, wordStop, 5, stopOrder{Number: 1}); err == nil {
		t.Error("the first holder's order is taken")
	}
}

// TestContainersLapse: containers without their leader's lease end by themselves, and so do commands in them.
func TestContainersLapse(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := newServer("a", inContainers(e))
	s.o.Dir = t.TempDir()
	t.Cleanup(s.close)
	if _, err := give[held](s, wordHold, 1, holdOrder{Lease: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	c := boxes(t, docker.Settings{}).Settings
	spawnIn(t, s, 1, 1, c)
	if _, err := give[json.RawMessage](s, wordRun, 1, runOrder{2, Settings{Containers: c}, []string{"sleep", "60"}}); err != nil {
		t.Fatal(err)
	}
	emptied(t, e, 10*time.Second+lapseGrace+60*time.Second) // and what a busy machine takes
}

// TestUnsweptContainers: as long as what an earlier agent left cannot be ended no container is started.
func TestUnsweptContainers(t *testing.T) {
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := newServer("a", inContainers(e))
	s.o.Dir = t.TempDir()
	t.Cleanup(s.close)
	e.Run("left", ref, []string{"sleep", "60"}, map[string]string{"perflab.agent": "agent"})
	e.FailWith(func(method, path string) (int, string) {
		return map[bool]int{true: 500}[path == "/containers/json"], "the list is broken"
	})
	if _, err := give[held](s, wordHold, 1, holdOrder{Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	o := runOrder{1, Settings{Containers: boxes(t, docker.Settings{}).Settings}, []string{"true"}}
	if _, err := give[json.RawMessage](s, wordRun, 1, o); err == nil || !strings.Contains(err.Error(), "the list is broken") {
		t.Errorf("a command beside leftovers: %v", err)
	}
	e.FailWith(nil)
	if _, err := give[json.RawMessage](s, wordRun, 1, o); err != nil {
		t.Error(err)
	}
	emptied(t, e, time.Minute)
}

// Parts that the test's own program plays, so that it can be killed.
const (
	partVariable = "PERFLAB_TEST_PART" // leader or agent
	partArgs     = "PERFLAB_TEST_PART_ARGS"
)

// killedLease is that of a leader that is killed.
const killedLease = 6 * time.Second

// part is what a part needs.
type part struct {
	Dir        string // of the hub, or the agent
	Docker     string // address of the Docker Engine, for an agent
	Agent      Agent  // for a leader
	Containers json.RawMessage
	Argv, Env  []string // of an engine
	Logs       string
}

// play plays a part until it is killed, or the test is gone.
func play(name string) error {
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(3)
	}()
	var p part
	if err := json.Unmarshal([]byte(os.Getenv(partArgs)), &p); err != nil {
		return err
	}
	load := map[string]func(string) (bus.Identity, error){"leader": bus.LoadLeader, "agent": bus.Load}[name]
	me, err := load(p.Dir)
	if err != nil {
		return err
	}
	conn, err := bus.Dial(context.Background(), me, bus.DialOptions{})
	if err != nil {
		return err
	}
	if name == "agent" {
		o := Options{Conn: conn, Dir: p.Dir, Containers: docker.Node{ID: conn.ID(), Host: p.Docker, Allow: docker.Allow{Images: []string{"*"}}}}
		fmt.Println("up")
		return Serve(context.Background(), o)
	}
	n := Lead(Leader{Conn: conn, Lease: killedLease, Agents: func(context.Context) []Agent { return []Agent{p.Agent} }})
	spec := deploy.Spec{Dir: p.Logs, Replicas: []deploy.Replica{{Member: deploy.Member{Argv: p.Argv, Env: p.Env}}}}
	if _, err := n.On(p.Agent.Name, hasty, &deploy.Containers{Settings: p.Containers}).Start(context.Background(), spec); err != nil {
		return err
	}
	fmt.Println("up")
	select {}
}

// start starts a part as a process, until kill is called.
func (p part) start(t *testing.T, name string) (kill func()) {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), partVariable+"="+name, partArgs+"="+string(b))
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = c.Process.Kill() // an error: it was killed already
		_ = c.Wait()
		_ = stdin.Close()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("the %s says %q, %v", name, line, err)
	}
	return kill
}

// TestLeaderKilled: when a leader is killed its containers end by its lease, and the next leader has the node.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s.startWith(t, "a", nil, inContainers(e))
	spec := deploytest.Spec(t, deploytest.Ready)
	m := spec.Replicas[0].Member
	p := part{Dir: s.dir, Agent: s.there(t.Context())[0], Containers: boxes(t, docker.Settings{}).Settings, Argv: m.Argv, Env: m.Env, Logs: spec.Dir}
	kill := p.start(t, "leader")
	if len(e.Containers()) != 1 {
		t.Fatalf("containers %+v", e.Containers())
	}
	kill()
	emptied(t, e, killedLease+lapseGrace+60*time.Second)
	rt := s.lead(t, Leader{Lease: killedLease}).On("a", hasty, boxes(t, docker.Settings{}))
	deploytest.Start(t, rt, deploytest.Spec(t, deploytest.Ready))
}

// TestAgentKilled: when an agent is killed its containers run on, until it is started again.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	dir := t.TempDir()
	url, err := s.hub.Invite(bus.Invite{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	me, err := bus.Join(t.Context(), url, dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	s.agents = append(s.agents, Agent{ID: me.ID, Name: "a"})
	p := part{Dir: dir, Docker: e.Host}
	kill := p.start(t, "agent")
	n := s.lead(t, Leader{Lease: 20 * time.Second})
	awaitServed(t, n)
	d, err := n.On("a", hasty, boxes(t, docker.Settings{})).Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
	if err != nil {
		t.Fatal(err)
	}
	kill()
	if len(e.Containers()) != 1 {
		t.Errorf("containers %+v: what is killed ends nothing", e.Containers())
	}
	p.start(t, "agent")
	emptied(t, e, time.Minute)
	<-d.Done()
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "engines", "*")); err != nil || len(left) > 1 {
		t.Errorf("left in the agent's directory are %q, %v", left, err)
	}
}
