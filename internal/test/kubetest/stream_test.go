package kubetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"

	"perflab/internal/test/deploytest"
)

// config is how a client of a test reaches the API server.
func config(c *Cluster, user string) *rest.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &rest.Config{Host: c.door.url, BearerToken: c.users[user], TLSClientConfig: rest.TLSClientConfig{CAData: c.plane.certs.authority}}
}

// executors are both ways of a client to a command in a container.
func executors(t *testing.T, c *Cluster, ns, pod string, query url.Values) map[string]remotecommand.Executor {
	t.Helper()
	at, err := url.Parse(c.door.url + "/api/v1/namespaces/" + ns + "/pods/" + pod + "/exec?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(config(c, Admin), http.MethodGet, at.String())
	if err != nil {
		t.Fatal(err)
	}
	older, err := remotecommand.NewSPDYExecutor(config(c, Admin), http.MethodPost, at)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"WebSocket": socket, "SPDY": older}
}

// TestExec runs commands in a container: with input, with an exit code, in one that has ended.
func TestExec(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	pod := shell("echo there > /d/file; echo up; exec sleep 1000")
	pod["volumeMounts"] = []any{object{"name": "d", "mountPath": "/d"}}
	pod["env"] = []any{object{"name": "WHO", "value": "engine"}}
	pod["readinessProbe"] = object{"exec": object{"command": []any{"test", "-e", "/d/file"}}}
	create(t, c, ns, onePod("a", pod, object{"volumes": []any{object{"name": "d", "emptyDir": object{}}}}))
	create(t, c, ns, onePod("ended", object{"command": []any{"true"}}))
	until(t, c, ns, "a", isReady)
	until(t, c, ns, "ended", phase(corev1.PodSucceeded))
	query := url.Values{"container": {"engine"}, "command": {"sh", "-c", "cat /d/file; echo $WHO; cat; echo wrong >&2; exit 3"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	for way, e := range executors(t, c, ns, "a", query) {
		var out, errs bytes.Buffer
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("input\n"), Stdout: &out, Stderr: &errs})
		if end, is := errors.AsType[utilexec.ExitError](err); !is || end.ExitStatus() != 3 {
			t.Errorf("%s: %v, not exit code 3", way, err)
		}
		if out.String() != "there\nengine\ninput\n" || errs.String() != "wrong\n" {
			t.Errorf("%s: output %q, errors %q", way, out.String(), errs.String())
		}
	}
	query = url.Values{"container": {"engine"}, "command": {"true"}, "stdout": {"true"}}
	for way, e := range executors(t, c, ns, "a", query) {
		if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
	for way, e := range executors(t, c, ns, "ended", query) {
		if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); err == nil {
			t.Errorf("%s: a command runs in a container that has ended", way)
		}
	}
}

// TestForward reaches ports of a pod through the API server.
func TestForward(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // ErrServerClosed
	}()
	defer func() { s.Close(); <-served }()
	create(t, c, ns, onePod("a", shell("exec sleep 1000")))
	until(t, c, ns, "a", isReady)
	config := config(c, Admin)
	at := &url.URL{Scheme: "https", Host: strings.TrimPrefix(c.door.url, "https://"), Path: "/api/v1/namespaces/" + ns + "/pods/a/portforward"}
	socket, err := portforward.NewSPDYOverWebsocketDialer(at, config)
	if err != nil {
		t.Fatal(err)
	}
	trip, upgrade, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	older := spdy.NewDialer(upgrade, &http.Client{Transport: trip}, http.MethodPost, at)
	local := deploytest.UnusedPorts(t, 2)
	ports := func(i int) []string { return []string{fmt.Sprintf("%d:%d", local+i, l.Addr().(*net.TCPAddr).Port)} }
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(socket, ports(0), stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	forward(t, "WebSocket", local, f, stop, ready)
	stop, ready = make(chan struct{}), make(chan struct{})
	if f, err = portforward.New(older, ports(1), stop, ready, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	forward(t, "SPDY", local+1, f, stop, ready)
}

// forward reads what is served on a port of the pod several times.
func forward(t *testing.T, way string, local int, f *portforward.PortForwarder, stop, ready chan struct{}) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("%s: %v", way, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", local))
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if string(text) != "served" || err != nil {
			t.Errorf("%s: through the forward came %q, %v", way, text, err)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Errorf("%s: %v", way, err)
	}
}

// TestProbes has containers that are not ready yet, not any more, and not alive.
func TestProbes(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	probe := func(command ...any) object {
		return object{"exec": object{"command": command}, "periodSeconds": 1, "failureThreshold": 1}
	}
	volumes := object{"volumes": []any{object{"name": "d", "hostPath": object{"path": t.TempDir()}}}, "restartPolicy": "Always"}
	with := func(o object) object {
		o["volumeMounts"] = []any{object{"name": "d", "mountPath": "/d"}}
		return o
	}
	pod := with(shell("echo up; exec sleep 1000"))
	pod["startupProbe"] = object{"exec": object{"command": []any{"test", "-e", "/d/started"}}, "failureThreshold": 1000}
	pod["readinessProbe"] = probe("test", "!", "-e", "/d/busy")
	create(t, c, ns, onePod("a", pod, volumes))
	got := until(t, c, ns, "a", phase(corev1.PodRunning))
	if s := got.Status.ContainerStatuses[0]; s.Ready || *s.Started {
		t.Errorf("status of one that has not started: %+v", s)
	}
	touch := with(shell("touch /d/$0"))
	touch["args"] = []any{"started"}
	create(t, c, ns, onePod("start", touch, volumes, object{"restartPolicy": "Never"}))
	until(t, c, ns, "a", isReady)
	touch["args"] = []any{"busy"}
	create(t, c, ns, onePod("busy", touch, volumes, object{"restartPolicy": "Never"}))
	until(t, c, ns, "a", func(p *corev1.Pod) bool { return !isReady(p) && *first(p).Started })
	has(t, c, ns, "a", "Unhealthy: Probe failed")

	pod = shell("echo up; exec sleep 1000")
	port := deploytest.UnusedPorts(t, 1)
	pod["ports"] = []any{object{"name": "http", "containerPort": port}}
	pod["livenessProbe"] = object{"httpGet": object{"port": "http", "path": "/health"}, "periodSeconds": 1, "failureThreshold": 1}
	create(t, c, ns, onePod("dead", pod, volumes))
	until(t, c, ns, "dead", func(p *corev1.Pod) bool { return first(p).RestartCount >= 1 })
	has(t, c, ns, "dead", "Killing: Container engine failed liveness probe, will be restarted")
}
