package kube

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// listening is a port of an address of this machine at which somebody listens.
func listening(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestWays: requests go to the Service's own address where that answers, else to its pods where all of theirs do.
func TestWays(t *testing.T) {
	up, pod := listening(t, "127.0.0.1"), listening(t, "127.0.0.1")
	down := deploytest.UnusedPorts(t, 1)
	at := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	for _, c := range []struct {
		name     string
		ip       string
		port     int
		protocol string
		pods     []int
		reach    string
		urls     []string
		want     string // how, and where
		wrong    string
	}{
		{name: "its address", ip: "127.0.0.1", port: up, pods: []int{pod}, want: "service http://" + at(up)},
		{name: "by TLS", ip: "127.0.0.1", port: up, protocol: "https", pods: []int{pod}, want: "service https://" + at(up)},
		{name: "its pods", ip: "127.0.0.1", port: down, pods: []int{pod, up}, want: "pods http://" + at(pod) + " http://" + at(up)},
		{name: "pods wanted", ip: "127.0.0.1", port: up, pods: []int{pod}, reach: ReachPods, want: "pods http://" + at(pod)},
		{name: "no address", ip: "None", port: 80, pods: []int{pod}, want: "pods http://" + at(pod)},
		{name: "a gateway", ip: "127.0.0.1", port: up, pods: []int{pod}, urls: []string{"https://gate"}, want: "url https://gate"},
		{name: "pods that do not answer", ip: "127.0.0.1", port: up, pods: []int{pod, down}, reach: ReachPods, wrong: "the addresses of its pods do not answer from here"},
		{name: "an address that does not answer", ip: "127.0.0.1", port: down, pods: []int{pod}, reach: ReachService, wrong: "its address does not answer from here"},
		{name: "nothing answers", ip: "127.0.0.1", port: down, wrong: "no pod is known to which a port could be forwarded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := corev1.ServicePort{Port: int32(c.port)}
			if c.protocol != "" {
				port.AppProtocol = &c.protocol
			}
			d := &served{
				Service: &Service{Settings: Settings{Reach: c.reach}, URLs: c.urls}, cluster: &cluster{namespace: "prod"}, op: "reach the Service prod/llama", name: "llama",
				object: &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: c.ip}}, port: port,
			}
			for _, p := range c.pods {
				d.members = append(d.members, &member{seen: seen{Pod: &corev1.Pod{Status: corev1.PodStatus{PodIP: "127.0.0.1"}}}, port: p})
			}
			err := d.choose(t.Context())
			if got := strings.Join(append([]string{d.reach}, d.targets...), " "); err == nil && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if infra, ok := errors.AsType[*deploy.InfraError](err); (err != nil || c.wrong != "") && (!ok || !strings.Contains(infra.Error(), c.wrong) || c.wrong == "" || infra.Help == "") {
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
}

// TestInside: pods reach what is forwarded here at the Service's address, or, where it has none, at that of the pod.
func TestInside(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := &forward{Listener: l, address: "10.1.2.3", port: 8000}
	for ip, want := range map[string]string{"10.96.0.7": "http://10.96.0.7:80", "None": "http://10.1.2.3:8000", "fd00::7": "http://[fd00::7]:80"} {
		d := &served{object: &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: ip}}, port: corev1.ServicePort{Port: 80}, forwards: []*forward{f}}
		if got := d.Inside(d.at(f)); got != want {
			t.Errorf("of %s %s, want %s", ip, got, want)
		}
		if got := d.Inside("http://gate"); got != "http://gate" {
			t.Errorf("a gateway is %s", got)
		}
	}
}

// TestPortOfPod: the port of a pod is the one that the Service leads to, and its container the one that has it.
func TestPortOfPod(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "proxy", Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 15000}}},
		{Name: "engine", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8000}}},
	}}}
	for _, c := range []struct {
		to        intstr.IntOrString
		port      int
		container string
	}{
		{intstr.FromString("http"), 8000, "engine"}, {intstr.FromInt32(8000), 8000, "engine"}, {intstr.FromInt32(15000), 15000, "proxy"},
		{intstr.FromString("grpc"), 0, ""}, {intstr.IntOrString{}, 80, "proxy"},
	} {
		got := portIn(pod, corev1.ServicePort{Port: 80, TargetPort: c.to})
		if got != c.port || c.container != "" && serving(pod, got) != c.container {
			t.Errorf("%s leads to %d, want %d of %s", c.to.String(), got, c.port, c.container)
		}
	}
}

// TestEnded: what happened to a pod before it was found is no news, and what happens later is.
func TestEnded(t *testing.T) {
	state := func(restarts int32, s corev1.ContainerState) seen {
		return seen{Pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "beside", RestartCount: 3 * restarts}, {Name: "main", RestartCount: restarts, State: s},
		}}}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	m := &member{seen: state(2, running), container: "main"}
	deleted := state(2, running)
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	beside := state(2, running)
	beside.Status.ContainerStatuses[0].RestartCount++
	gone := state(2, running)
	gone.gone = true
	for _, c := range []struct {
		name string
		now  seen
		want string
	}{
		{"the same", state(2, running), ""}, {"another container", beside, ""},
		{"again", state(3, running), "its container main was started again"},
		{"ended", state(2, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}), "exit status 137 (signal: killed)"},
		{"deleted", deleted, "its pod was deleted"}, {"gone", gone, "its pod was deleted"},
	} {
		if got := m.ended(c.now); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, text := range []string{"prod/llama", "llama", "prod/llama:8000", "llama:http"} {
		if name, port, err := SplitService(text); err != nil || strings.TrimSuffix(name+":"+port, ":") != text {
			t.Errorf("%s is %s at %s: %v", text, name, port, err)
		}
	}
	for _, text := range []string{"", "/", "a/", "/b", "a/b/c", "A", "a:", "a:b:c", "a b", "../x", "a.b"} {
		if _, _, err := SplitService(text); err == nil {
			t.Errorf("%q is taken for a Service", text)
		}
	}
	if rules := (Uses{Service: true}).rules(); slices.ContainsFunc(rules, func(r rule) bool {
		return slices.ContainsFunc(r.verbs, func(v string) bool {
			return v == "delete" || v == "patch" || v == "create" && r.resource != "pods/portforward"
		})
	}) {
		t.Errorf("to look at a Service needs %+v", rules)
	}
}
