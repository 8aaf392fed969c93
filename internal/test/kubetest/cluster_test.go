package kubetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	leaseKind      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deploymentKind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// through is a user's client that goes by the test's door, as perflab's do.
func through(t *testing.T, c *Cluster, user string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(t, user))
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "someone/1"
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func as(t *testing.T, o any) *unstructured.Unstructured {
	t.Helper()
	u, err := encode(o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestLeft has a namespace in which somebody left something, and a deletion of the owner that
// leaves nothing.
func TestLeft(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	d := through(t, c, Admin)
	owner, err := d.Resource(leaseKind).Namespace(ns).Create(t.Context(), as(t, object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": object{"name": "owner"}}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	work := deployment(shell("exec sleep 1000"), object{})
	work["metadata"].(object)["ownerReferences"] = []any{object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "owner", "uid": string(owner.GetUID())}}
	if _, err := d.Resource(deploymentKind).Namespace(ns).Create(t.Context(), as(t, work), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	aPod(t, c, ns, isReady)
	left := strings.Join(c.Left(t, ns, 0), "\n")
	for _, want := range []string{"Lease owner", "Deployment work", "ReplicaSet work-", "Pod work-"} {
		if !strings.Contains(left, want) {
			t.Errorf("left is not %s:\n%s", want, left)
		}
	}
	if err := d.Resource(leaseKind).Namespace(ns).Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if left := c.Left(t, ns, patience); len(left) > 0 {
		t.Errorf("left behind the owner: %q", left)
	}
}

// recorder is a test that only takes note of what fails and of what is to be done at its end.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// TestLeftBehind has a test fail that leaves something in its namespace.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	c := Start(t)
	r := &recorder{TB: t}
	ns := c.Namespace(r)
	made := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "flags"}, "data": object{"a": "b"}}
	if _, err := c.plane.api.make(t.Context(), configKind, ns, made); err != nil {
		t.Fatal(err)
	}
	if left := c.Left(t, ns, 0); len(left) > 0 {
		t.Errorf("what the test makes itself is left: %q", left)
	}
	made["metadata"].(object)["name"] = "other"
	if _, err := through(t, c, Admin).Resource(configKind).Namespace(ns).Create(t.Context(), as(t, made), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.patience = 0
	for _, f := range r.cleanups {
		f()
	}
	if want := "left in namespace " + ns + ": ConfigMap other"; len(r.failures) != 1 || r.failures[0] != want {
		t.Errorf("the test fails with %q, not %q", r.failures, want)
	}
}

// deployment is one of a pod of one container.
func deployment(container, labels object) object {
	pod := onePod("", container)
	spec := pod["spec"].(object)
	spec["restartPolicy"] = "Always"
	labels["app"] = "work"
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "work"}, "spec": object{
		"selector": object{"matchLabels": object{"app": "work"}}, "template": object{"metadata": object{"labels": labels}, "spec": spec},
	}}
}

// aPod waits until a namespace has a pod as f says, and returns it.
func aPod(t *testing.T, c *Cluster, ns string, f func(*corev1.Pod) bool) (found *corev1.Pod) {
	t.Helper()
	if !eventually(t.Context(), soon, func() bool {
		found = nil
		list, err := c.plane.api.in(podKind, ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for i := range list.Items {
			pod := &corev1.Pod{}
			if decode(&list.Items[i], pod) == nil && f(pod) {
				found = pod
			}
		}
		return found != nil
	}) {
		t.Fatalf("no pod of %s comes so far", ns)
	}
	return found
}

// TestUser has one who may read pods and nothing else, with an account of the kit and with one
// of the namespace.
func TestUser(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	user := c.User(t, ns, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
	d := through(t, c, user)
	if _, err := d.Resource(podKind).Namespace(ns).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := d.Resource(secretKind).Namespace(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v, not forbidden", err)
	}
	d = through(t, c, c.Account(t, ns, "default"))
	if _, err := d.Resource(podKind).Namespace(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+ns+":default") {
		t.Errorf("list pods: %v, not forbidden", err)
	}
}

// TestNodes has two tests' machines in one cluster, of which each test sees its own.
func TestNodes(t *testing.T) {
	t.Parallel()
	c, other := Start(t), Start(t)
	n := c.Node(t, "node-1", nil, "zone=a")
	c.Node(t, "node-2", nil, "zone=b")
	other.Node(t, "node-1", nil, "zone=a")
	d := through(t, c, Admin).Resource(nodeKind)
	for selector, want := range map[string]int{"": 2, "zone=a": 1} {
		list, err := d.List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want || list.Items[0].GetName() != n.Name {
			t.Errorf("with selector %q there are %d nodes, the first is %s", selector, len(list.Items), list.Items[0].GetName())
		}
	}
}

// TestJob has a Job of several pods, each of which knows its number, run to its end.
func TestJob(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	spec := onePod("", shell("echo $JOB_COMPLETION_INDEX"))["spec"]
	d := through(t, c, Admin).Resource(jobKind).Namespace(ns)
	job := object{"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "agents"}, "spec": object{
		"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimit": 0, "template": object{"spec": spec},
	}}
	if _, err := d.Create(t.Context(), as(t, job), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !eventually(t.Context(), soon, func() bool {
		u, err := d.Get(t.Context(), "agents", metav1.GetOptions{})
		if err != nil {
			return false
		}
		indexes, _, _ := unstructured.NestedString(u.Object, "status", "completedIndexes")
		return indexes == "0-2"
	}) {
		t.Error("the Job has not ended in time")
	}
	pods, err := c.plane.api.in(podKind, ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, u := range pods.Items {
		said.WriteString(readLog(t, c, ns, u.GetName(), ""))
	}
	if lines := strings.Fields(said.String()); !slices.Equal(slices.Sorted(slices.Values(lines)), []string{"0", "1", "2"}) {
		t.Errorf("the pods say %q", said.String())
	}
	background := metav1.DeletePropagationBackground
	if err := d.Delete(t.Context(), "agents", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

// TestAway has the API server out of a client's reach, answering with failures, and back.
func TestAway(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	d := through(t, c, Admin).Resource(podKind).Namespace(ns)
	w, err := d.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	back := c.Away(t)
	for range w.ResultChan() { // ends as the connection breaks
	}
	if _, err := d.List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the API server is reached while it is away")
	}
	back()
	if _, err := d.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	c.FailWith(func(r *http.Request) (int, string) {
		if r.Method == http.MethodDelete {
			return http.StatusTooManyRequests, "too many"
		}
		return 0, ""
	})
	if err := d.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("delete: %v, not too many requests", err)
	}
	c.FailWith(nil)
	if err := d.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("delete: %v, not a missing pod", err)
	}
	want := Request{"someone", http.MethodDelete, "/api/v1/namespaces/" + ns + "/pods/a"}
	if !slices.Contains(c.Requests(), want) {
		t.Errorf("requests %v without %v", c.Requests(), want)
	}
}

// TestNamespaceGoes deletes a namespace beneath what runs in it.
func TestNamespaceGoes(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	create(t, c, ns, onePod("a", shell("exec sleep 1000")))
	until(t, c, ns, "a", isReady)
	c.DeleteNamespace(t, ns)
	if _, err := c.plane.api.Resource(namespaceKind).Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s: %v", ns, err)
	}
}

// TestRefuse has a site that lets no pod in without a label.
func TestRefuse(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Refuse(t, ns, func(o map[string]any) string {
		if u := (&unstructured.Unstructured{Object: o}); u.GetKind() == "Pod" && u.GetLabels()["team"] == "" {
			return "every pod needs a team"
		}
		return ""
	})
	d := through(t, c, Admin).Resource(podKind).Namespace(ns)
	_, err := d.Create(t.Context(), as(t, onePod("a", shell("true"))), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if want := `admission webhook "policy.site.example" denied the request: every pod needs a team`; err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
	good := onePod("a", shell("true"))
	good["metadata"].(object)["labels"] = object{"team": "a"}
	if _, err := d.Create(t.Context(), as(t, good), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
}

// TestQueue has a deployment wait behind a queue's gate, let in, and put out again.
func TestQueue(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	c.Node(t, "node-1", nil)
	q := c.Queue(t, ns, "team-a")
	work := deployment(shell("exec sleep 1000"), object{})
	work["metadata"].(object)["labels"] = object{queueLabel: q.Name}
	if _, err := c.plane.api.make(t.Context(), deploymentKind, ns, work); err != nil {
		t.Fatal(err)
	}
	gated := func(p *corev1.Pod) bool {
		return len(p.Spec.SchedulingGates) == 1 && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonSchedulingGated })
	}
	waiting := aPod(t, c, ns, gated)
	q.Admit(t)
	runs := aPod(t, c, ns, isReady)
	if runs.UID != waiting.UID {
		t.Errorf("pod %s runs and %s waited", runs.Name, waiting.Name)
	}
	q.Preempt(t)
	aPod(t, c, ns, gated)
	if err := c.plane.api.in(deploymentKind, ns).Delete(t.Context(), "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestSets has a leader with two workers, whose end is the end of the group.
func TestSets(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ns := c.Namespace(t)
	n := c.Node(t, "node-1", nil)
	template := func() object {
		spec := onePod("", shell("echo $LWS_WORKER_INDEX of $LWS_GROUP_SIZE at $LWS_LEADER_ADDRESS; exec sleep 1000"))["spec"].(object)
		spec["restartPolicy"] = "Always"
		return object{"metadata": object{"labels": object{"app": "engine"}}, "spec": spec}
	}
	set := object{"apiVersion": setKind.GroupVersion().String(), "kind": "LeaderWorkerSet", "metadata": object{"name": "engine"}, "spec": object{
		"replicas": 1, "leaderWorkerTemplate": object{"size": 3, "restartPolicy": recreate, "leaderTemplate": template(), "workerTemplate": template()},
	}}
	d := through(t, c, Admin).Resource(setKind).Namespace(ns)
	if _, err := d.Create(t.Context(), as(t, set), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	uids := map[string]any{}
	for i, name := range []string{"engine-0", "engine-0-1", "engine-0-2"} {
		uids[name] = until(t, c, ns, name, isReady).UID
		want := fmt.Sprintf("%d of 3 at 127.0.0.1\n", i)
		if !eventually(t.Context(), soon, func() bool { return readLog(t, c, ns, name, "") == want }) {
			t.Errorf("%s says %q", name, readLog(t, c, ns, name, ""))
		}
	}
	n.RunOutOfMemory(t, ns, "engine-0-1", "engine")
	for name, uid := range uids {
		until(t, c, ns, name, func(p *corev1.Pod) bool { return isReady(p) && p.UID != uid })
	}
	if !eventually(t.Context(), soon, func() bool {
		u, err := d.Get(t.Context(), "engine", metav1.GetOptions{})
		if err != nil {
			return false
		}
		ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		return ready == 1
	}) {
		t.Error("the set is not ready in time")
	}
	if err := d.Delete(t.Context(), "engine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

const leaveVariable = "KUBETEST_LEAVE"

// TestKilled has a test binary end without a word while its cluster runs a pod.
func TestKilled(t *testing.T) {
	if os.Getenv(leaveVariable) != "" {
		leave(t)
	}
	t.Parallel()
	if os.Getenv(Variable) == "" {
		Start(t) // skips
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$", "-test.v")
	cmd.Env = append(os.Environ(), leaveVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var left struct{ Dir, Hidden string }
	lines := bufio.NewScanner(out)
	for left.Dir == "" && lines.Scan() {
		_ = json.Unmarshal(lines.Bytes(), &left) // other lines are the testing package's
	}
	_ = cmd.Process.Kill() // what is looked at
	_ = cmd.Wait()         // killed
	if left.Dir == "" {
		t.Fatal("the test binary came to no cluster")
	}
	if !eventually(t.Context(), soon, func() bool {
		_, err := os.Stat(left.Dir)
		command, _ := os.ReadFile("/proc/" + left.Hidden + "/cmdline") // none of one that has ended
		return os.IsNotExist(err) && len(marked("KUBETEST_DIR="+left.Dir)) == 0 && len(command) == 0
	}) {
		t.Errorf("processes %d and "+left.Hidden+" outlive the test binary, or its directory %s does", marked("KUBETEST_DIR="+left.Dir), left.Dir)
	}
}

// leave has a pod run, with a process outside of its group, says where, and waits to be killed.
func leave(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	n := c.Node(t, "node-1", nil)
	create(t, c, ns, onePod("a", shell("setsid sleep 1000 & env -i sleep 1000 & echo $!; exec sleep 1000")))
	until(t, c, ns, "a", isReady)
	hidden := ""
	if !eventually(t.Context(), soon, func() bool {
		hidden = strings.TrimSpace(readLog(t, c, ns, "a", ""))
		return hidden != "" && len(n.Processes(t, ns, "a")) == 2
	}) {
		t.Fatal("the pod's processes do not run")
	}
	fmt.Printf("\n{\"Dir\": %q, \"Hidden\": %q}\n", c.plane.dir, hidden)
	<-time.After(2 * soon) // the test that waits for this one has failed then
}
