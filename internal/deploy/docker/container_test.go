package docker_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
)

// get follows keys into what was decoded from JSON.
func get(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// only is the one container of an engine.
func only(t *testing.T, e *dockertest.Engine) dockertest.Container {
	t.Helper()
	all := e.Containers()
	if len(all) != 1 {
		t.Fatalf("%d containers, want 1", len(all))
	}
	return all[0]
}

func TestContainerIsAsSet(t *testing.T) {
	t.Setenv("PERFLAB_TEST_TOKEN", "hf_secret-of-perflab")
	dir := t.TempDir()
	e := dockertest.Start(t, dockertest.Image{Ref: ref, Entrypoint: []string{"vllm", "serve"}})
	r := quick(e, docker.Settings{
		GPUs: docker.GPUsAll, ContainerRuntime: "nvidia", IPC: "host", ShmSize: "16g", Ulimits: []string{"memlock=-1", "stack=67108864"},
		Mounts: []string{dir + ":/root/.cache:ro", "models:/models"}, Env: []string{"A=b", "PERFLAB_TEST_TOKEN", "PERFLAB_TEST_UNSET"},
		Labels: []string{"team=x"}, CPUs: 1.5, CPUSet: "0-1", Memory: "64g", ExtraHosts: []string{"a:10.0.0.2"}, Devices: []string{"/dev/kfd", "/dev/dri:/dev/x:r"},
		GroupAdd: []string{"video"}, CapAdd: []string{"SYS_PTRACE"}, SecurityOpt: []string{"seccomp=unconfined"}, Init: true, Entrypoint: []string{"env"}, Platform: "linux/amd64",
	})
	s := deploytest.Spec(t, deploytest.Ready)
	argv := s.Replicas[0].Argv
	d := deploytest.Start(t, r, s)
	c := only(t, e)
	entry := []any{"env", argv[0], "serve", "--port", strings.TrimPrefix(d.Targets()[0], "http://127.0.0.1:")}
	if got := append(get(c.Config, "Entrypoint").([]any), get(c.Config, "Cmd").([]any)...); cmp.Diff(entry, got) != "" {
		t.Errorf("command %q, want %q", got, entry)
	}
	for want, got := range map[string]any{
		`[{"Capabilities":[["gpu"]],"Count":-1,"DeviceIDs":null,"Driver":"","Options":null}]`: get(c.Config, "HostConfig", "DeviceRequests"),
		`[["host"],"nvidia",17179869184,1500000000,"0-1",68719476736,["a:10.0.0.2"],["video"],["CAP_SYS_PTRACE"],["seccomp=unconfined"],true,"host"]`: []any{
			[]any{get(c.Config, "HostConfig", "IpcMode")}, get(c.Config, "HostConfig", "Runtime"), get(c.Config, "HostConfig", "ShmSize"), get(c.Config, "HostConfig", "NanoCpus"),
			get(c.Config, "HostConfig", "CpusetCpus"), get(c.Config, "HostConfig", "Memory"), get(c.Config, "HostConfig", "ExtraHosts"), get(c.Config, "HostConfig", "GroupAdd"),
			get(c.Config, "HostConfig", "CapAdd"), get(c.Config, "HostConfig", "SecurityOpt"), get(c.Config, "HostConfig", "Init"), get(c.Config, "HostConfig", "NetworkMode"),
		},
		`[{"Hard":-1,"Name":"memlock","Soft":-1},{"Hard":67108864,"Name":"stack","Soft":67108864}]`:                                                                       get(c.Config, "HostConfig", "Ulimits"),
		`[{"CgroupPermissions":"rwm","PathInContainer":"/dev/kfd","PathOnHost":"/dev/kfd"},{"CgroupPermissions":"r","PathInContainer":"/dev/x","PathOnHost":"/dev/dri"}]`: get(c.Config, "HostConfig", "Devices"),
		`[{"ReadOnly":true,"Source":"` + dir + `","Target":"/root/.cache","Type":"bind"},{"Source":"models","Target":"/models","Type":"volume"}]`:                         get(c.Config, "HostConfig", "Mounts"),
		`{"Test":["NONE"]}`: get(c.Config, "Healthcheck"),
	} {
		b, err := json.Marshal(got)
		if err != nil || string(b) != want {
			t.Errorf("got %s, want %s", b, want)
		}
	}
	if c.Labels["team"] != "x" || c.Labels["perflab.process"] != "replica-0" || !strings.HasSuffix(c.Labels["perflab.deployment"], "/0") || strings.Contains(fmt.Sprint(c.Labels), "secret") {
		t.Errorf("labels %v", c.Labels)
	}
	env := fmt.Sprint(get(c.Config, "Env"))
	if !strings.Contains(env, "A=b PERFLAB_TEST_TOKEN=hf_secret-of-perflab ") || strings.Contains(env, "UNSET") || strings.Contains(env, "CUDA_VISIBLE_DEVICES") {
		t.Errorf("environment %s", env)
	}
	if image, ok := r.Resolved(); image != e.Digest(ref) || !ok {
		t.Errorf("resolved to %s, want %s", image, e.Digest(ref))
	}
}

func TestGPUsAreDealt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gpus    string
		devices []string
		visible string
		request string // DeviceIDs
		env     string
	}{
		{"", []string{"1", "3"}, "", `["1","3"]`, ""},
		{docker.GPUsAll, []string{"0"}, "", `["0"]`, ""},
		{"", nil, "", "", ""},
		{docker.GPUsNone, []string{"1", "3"}, "HIP_VISIBLE_DEVICES", "", "HIP_VISIBLE_DEVICES=1,3"},
		{docker.GPUsAll, []string{}, "", "", "NVIDIA_VISIBLE_DEVICES=void"},
	} {
		e := dockertest.Start(t, dockertest.Image{Ref: ref})
		s := deploytest.Spec(t, deploytest.Ready)
		s.Replicas[0].Devices, s.Visible = c.devices, c.visible
		d := deploytest.Start(t, quick(e, docker.Settings{GPUs: c.gpus}), s)
		config := only(t, e).Config
		requests, _ := get(config, "HostConfig", "DeviceRequests").([]any)
		var got strings.Builder
		for _, q := range requests {
			b, err := json.Marshal(get(q, "DeviceIDs"))
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(string(b))
		}
		env := fmt.Sprint(get(config, "Env"))
		if got.String() != c.request || c.env != "" && !strings.Contains(env, c.env) || c.env == "" && strings.Contains(env, "_VISIBLE_DEVICES") {
			t.Errorf("gpus %q, dealt %v: requested %s with %s", c.gpus, c.devices, got.String(), env)
		}
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestBridgePublishesThePort(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	s.Replicas[0].Env = append(s.Replicas[0].Env, "LISTEN={host}")
	d := deploytest.Start(t, quick(e, docker.Settings{Network: docker.NetworkBridge}), s)
	port := strings.TrimPrefix(d.Targets()[0], "http://127.0.0.1:")
	config := only(t, e).Config
	want := []any{map[string]any{"HostIp": "127.0.0.1", "HostPort": port}}
	if diff := cmp.Diff(any(want), get(config, "HostConfig", "PortBindings", port+"/tcp")); diff != "" {
		t.Error(diff)
	}
	if env := fmt.Sprint(get(config, "Env")); !strings.Contains(env, "LISTEN=0.0.0.0") {
		t.Errorf("environment %s: the engine does not listen on its own network", env)
	}
	s = deploytest.Spec(t, deploytest.Ready)
	s.Replicas[0].Peers = []deploy.Peer{{Name: "head", Member: deploytest.Engine(t, s.Dir, deploytest.Ready).Member}}
	if _, err := quick(e, docker.Settings{Network: docker.NetworkBridge}).Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "several processes") {
		t.Errorf("several processes in networks of their own: %v", err)
	}
}

func TestPull(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	count := func(e *dockertest.Engine) (n int) {
		for _, r := range e.Requests() {
			if r == "POST /images/create" {
				n++
			}
		}
		return n
	}
	start := func(r *docker.Runtime) error {
		s := deploytest.Spec(t, deploytest.Ready)
		d, err := r.Start(t.Context(), s)
		if err == nil {
			err = d.Stop(t.Context())
		}
		return err
	}
	for _, c := range []struct {
		policy string
		remote bool
		pulls  int
		err    string
	}{
		{"", true, 1, ""},
		{"", false, 0, ""},
		{docker.PullAlways, false, 1, ""},
		{docker.PullNever, true, 0, "pull is never"},
	} {
		e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: c.remote})
		r := quick(e, docker.Settings{Pull: c.policy})
		var said []string
		r.Progress = func(text string) { said = append(said, text) }
		for range 2 { // the second launch pulls no more
			err := start(r)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("pull %q: %v", c.policy, err)
			}
		}
		if got := count(e); got != c.pulls || (len(said) > 1) != (c.pulls > 0) {
			t.Errorf("pull %q: %d pulls, want %d; told %q", c.policy, got, c.pulls, said)
		}
	}
}

// A tag that moves while a study runs does not change what it measures.
func TestImageStaysTheSame(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	r := quick(e, docker.Settings{})
	var images []any
	for range 2 {
		d := deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
		images = append(images, get(only(t, e).Config, "Image"))
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		e.Retag(ref)
	}
	if images[0] != images[1] || !strings.HasPrefix(images[0].(string), "sha256:") {
		t.Errorf("images %v", images)
	}
}

func TestPullWithLogin(t *testing.T) {
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: true, Login: "me:hunter2-hunter2"})
	_, err := quick(e, docker.Settings{}).Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
	if i, ok := errors.AsType[*deploy.InfraError](err); !ok || !strings.Contains(i.Hint(), "docker login") {
		t.Errorf("without a login: %v", err)
	}
	auth := base64.StdEncoding.EncodeToString([]byte("me:hunter2-hunter2"))
	helper := "#!/bin/sh\nread server\n[ \"$server\" = registry.invalid ] && echo '{\"Username\":\"me\",\"Secret\":\"hunter2-hunter2\"}'\n"
	if err := os.WriteFile(filepath.Join(config, "docker-credential-fake"), []byte(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", config+":"+os.Getenv("PATH"))
	for _, text := range []string{
		`{"auths": {"registry.invalid": {"auth": "` + auth + `"}}}`,
		`{"credHelpers": {"registry.invalid": "fake"}}`,
		`{"auths": {"registry.invalid": {}}, "credsStore": "fake"}`,
	} {
		if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := dockertest.Start(t, dockertest.Image{Ref: ref, Remote: true, Login: "me:hunter2-hunter2"})
		d := deploytest.Start(t, quick(e, docker.Settings{}), deploytest.Spec(t, deploytest.Ready))
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestContextNamesTheEngine(t *testing.T) {
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	t.Setenv("DOCKER_HOST", "")
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	sum := sha256.Sum256([]byte("gpu-node")) // as the docker command names its directories
	dir := filepath.Join(config, "contexts", "meta", hex.EncodeToString(sum[:]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "meta.json"):      `{"Name":"gpu-node","Metadata":{},"Endpoints":{"docker":{"Host":"` + e.Host + `","SkipTLSVerify":false}}}`,
		filepath.Join(config, "config.json"): `{"currentContext":"gpu-node"}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &docker.Runtime{Settings: docker.Settings{Image: ref}}
	deploytest.Start(t, r, deploytest.Spec(t, deploytest.Ready))
	t.Setenv("DOCKER_CONTEXT", "no-such")
	r = &docker.Runtime{Settings: docker.Settings{Image: ref}}
	if _, err := r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready)); err == nil || !strings.Contains(err.Error(), `docker context "no-such"`) {
		t.Errorf("a context that is not there: %v", err)
	}
}

func TestFilesAreCopiedIn(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	m := &s.Replicas[0].Member
	m.Files = []deploy.File{{Name: "extra.yaml", Text: "port: {port}\n"}}
	m.Argv = append([]string{"/bin/sh", "-c", `cat "$0"; exec "$@"`, "{file:extra.yaml}"}, m.Argv...)
	d := deploytest.Start(t, quick(e, docker.Settings{}), s)
	port := strings.TrimPrefix(d.Targets()[0], "http://127.0.0.1:")
	if got := only(t, e).Files; len(got) != 1 || got["/perflab/extra.yaml"] != "port: "+port+"\n" {
		t.Errorf("files %q", got)
	}
	if err := d.Stop(t.Context()); err != nil { // the log is complete then
		t.Fatal(err)
	}
	if text := readLog(t, s); !strings.Contains(text, "\nport: "+port+"\n") {
		t.Errorf("the engine does not find its file:\n%s", text)
	}
}

func readLog(t *testing.T, s deploy.Spec) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, "replica-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// died waits for the end of a deployment that dies.
func died(t *testing.T, d deploy.Deployment) *deploy.DiedError {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the end of a replica goes unnoticed")
	}
	e, ok := errors.AsType[*deploy.DiedError](d.Err())
	if !ok {
		t.Fatalf("Err is %T %v, want a DiedError", d.Err(), d.Err())
	}
	return e
}

func TestOutOfMemoryIsTold(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	d := deploytest.Start(t, quick(e, docker.Settings{}), deploytest.Spec(t, deploytest.Ready))
	e.RunOutOfMemory(only(t, e).ID)
	if got := died(t, d); got.Status != "exit status 137 (the kernel ended it: out of memory)" {
		t.Errorf("status %q", got.Status)
	}
}

func TestStopAsksAndForces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		behaviour deploytest.Behaviour
		kills     int
	}{{deploytest.Ready, 1}, {deploytest.Stubborn, 2}} {
		e := dockertest.Start(t, dockertest.Image{Ref: ref})
		r := quick(e, docker.Settings{})
		if c.kills == 1 {
			r.Grace = time.Minute // that no busy machine uses up
		}
		d := deploytest.Start(t, r, deploytest.Spec(t, c.behaviour))
		began := time.Now()
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); (c.kills == 2) != (took >= r.Grace) {
			t.Errorf("%s: stopped after %v with a grace of %v", c.behaviour, took, r.Grace)
		}
		kills, removed := 0, 0
		for _, q := range e.Requests() {
			if strings.HasSuffix(q, "/kill") {
				kills++
			}
			if strings.HasPrefix(q, "DELETE /containers/") {
				removed++
			}
		}
		if kills != c.kills || removed != 1 || len(e.Containers()) != 0 {
			t.Errorf("%s: %d signals, want %d; %d removals, want 1; left %v", c.behaviour, kills, c.kills, removed, e.Containers())
		}
	}
}

// The daemon is restarted and its containers run on (live-restore): so does the deployment.
func TestDaemonRestarts(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	d := deploytest.Start(t, quick(e, docker.Settings{}), s)
	e.Restart()
	select {
	case <-d.Done():
		t.Fatalf("done with the daemon's restart: %v", d.Err())
	case <-time.After(300 * time.Millisecond):
	}
	deploytest.Get(t.Context(), d.Targets()[0]+"/die")
	if got := died(t, d); got.Status != "exit status 1" || got.Reason != deploytest.DeathLine {
		t.Errorf("died with %+v", got)
	}
}

func TestKilledPerflab(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"Sweep", "Start"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			e := dockertest.Start(t, dockertest.Image{Ref: ref})
			stranger := e.Run("stranger", ref, []string{"sleep", "60"}, map[string]string{"perflab.deployment": "OF-ANOTHER/0"})
			s := deploytest.Spec(t, deploytest.Forking, deploytest.Ready)
			r := quick(e, docker.Settings{})
			killOwner(t, r.Settings, s)
			if n := len(e.Containers()); n != 3 {
				t.Fatalf("%d containers after the kill, want 3", n)
			}
			if next == "Start" {
				s.Replicas = s.Replicas[1:]
				d := deploytest.Start(t, r, s)
				if n := len(e.Containers()); n != 2 {
					t.Errorf("%d containers, want the stranger's and one", n)
				}
				if err := d.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			} else {
				for _, want := range []int{2, 0} {
					ended, err := r.Sweep(t.Context(), filepath.Dir(s.Dir))
					if err != nil || len(ended) != want {
						t.Errorf("sweep ends %q, %v; want %d", ended, err, want)
					}
				}
			}
			deploytest.NothingLeft(t, s, 3)
			if c := only(t, e); c.ID != stranger || !c.Running {
				t.Errorf("left is %+v, want the stranger's container", c)
			}
		})
	}
}

// Engines behind a router and the router are containers that the next perflab finds.
func TestKilledPools(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Pools(t)
	r := quick(e, docker.Settings{})
	killOwner(t, r.Settings, s)
	if ended, err := r.Sweep(t.Context(), s.Dir); err != nil || len(ended) != 3 || len(e.Containers()) != 0 {
		t.Errorf("sweep ends %q, %v; left %v", ended, err, e.Containers())
	}
	deploytest.NothingLeft(t, s, 3)
}

// A perflab that is killed between two replicas leaves containers that the next one finds.
func TestKilledBetweenReplicas(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready, deploytest.Ready)
	worker := deploytest.Beside(t, s.Dir, "worker", deploytest.Worker)
	worker.Up = "no worker says this"
	s.Replicas[1].Peers = []deploy.Peer{worker}
	r := quick(e, docker.Settings{})
	owner, _ := startOwner(t, r.Settings, s)
	for end := time.Now().Add(20 * time.Second); len(deploytest.PIDs(t, s.Dir)) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the containers do not come up")
		}
	}
	owner.Process.Kill()
	owner.Wait()
	if ended, err := r.Sweep(t.Context(), s.Dir); err != nil || len(ended) != 2 || len(e.Containers()) != 0 {
		t.Errorf("sweep ends %q, %v; left %v", ended, err, e.Containers())
	}
	deploytest.NothingLeft(t, s, 2)
}

// A container that was created when perflab was killed is found by its marker alone.
func TestSweepByMarker(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	r := quick(e, docker.Settings{})
	killOwner(t, r.Settings, s)
	path := filepath.Join(s.Dir, "processes.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id := only(t, e).ID
	if !strings.Contains(string(b), id) {
		t.Errorf("the record lacks the container's id:\n%s", b)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), id, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	if ended, err := r.Sweep(t.Context(), s.Dir); err != nil || len(ended) != 1 || len(e.Containers()) != 0 {
		t.Errorf("sweep ends %q, %v; left %v", ended, err, e.Containers())
	}
}

func TestSecretsStayInTheContainer(t *testing.T) {
	const secret = "hunter2-hunter2"
	t.Setenv("PERFLAB_TEST_TOKEN", secret)
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	s.Replicas[0].Env = append(s.Replicas[0].Env, "API_KEY="+secret)
	r := quick(e, docker.Settings{Env: []string{"PERFLAB_TEST_TOKEN"}})
	deploytest.Start(t, r, s)
	if env := fmt.Sprint(get(only(t, e).Config, "Env")); strings.Count(env, secret) != 2 {
		t.Errorf("environment %s", env)
	}
	record, err := os.ReadFile(filepath.Join(s.Dir, "processes.json"))
	if err != nil {
		t.Fatal(err)
	}
	e.FailWith(func(method, path string) (int, string) {
		return map[bool]int{true: 500}[path == "/containers/create"], "cannot set PERFLAB_TEST_TOKEN: " + secret
	})
	_, err = r.Start(t.Context(), deploytest.Spec(t, deploytest.Ready))
	if err == nil || !strings.Contains(err.Error(), "cannot set") {
		t.Errorf("error %v", err)
	}
	for _, text := range []string{string(record), readLog(t, s), fmt.Sprint(only(t, e).Labels), fmt.Sprint(err)} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in %s", text)
		}
	}
}

func TestRecordIsGoneAfterStop(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	d := deploytest.Start(t, quick(e, docker.Settings{}), s)
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, []string{"pids", "replica-0.log"}) {
		t.Errorf("left are %q", names)
	}
}

func TestSweepByAnotherEngine(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	killOwner(t, quick(e, docker.Settings{}).Settings, s)
	other := dockertest.Start(t, dockertest.Image{Ref: ref})
	if _, err := quick(other, docker.Settings{}).Sweep(t.Context(), s.Dir); err == nil || !strings.Contains(err.Error(), e.Host) {
		t.Errorf("sweep: %v", err)
	}
	if ended, err := quick(e, docker.Settings{}).Sweep(t.Context(), s.Dir); err != nil || len(ended) != 1 {
		t.Errorf("sweep ends %q, %v", ended, err)
	}
}

// A replica of several processes has a container for each, on the machine's network.
func TestPeers(t *testing.T) {
	t.Parallel()
	e := dockertest.Start(t, dockertest.Image{Ref: ref})
	s := deploytest.Spec(t, deploytest.Ready)
	head := deploytest.Engine(t, s.Dir, deploytest.Ready).Member
	head.Argv[len(head.Argv)-1] = "{port:head}"
	s.Replicas[0].Peers = []deploy.Peer{{Name: "head", Member: head, Up: deploytest.Hello}}
	d := deploytest.Start(t, quick(e, docker.Settings{}), s)
	var processes []string
	for _, c := range e.Containers() {
		processes = append(processes, c.Labels["perflab.process"])
	}
	if want := []string{"replica-0.head", "replica-0"}; !slices.Equal(processes, want) {
		t.Errorf("containers %q, want %q", processes, want)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if left := e.Containers(); len(left) != 0 {
		t.Errorf("left is %+v", left)
	}
	deploytest.NothingLeft(t, s, 2)
}
