package kube

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"perflab/internal/deploy/render"
)

// a pod on a node whose container engine has a status.
func podOf(s corev1.ContainerStatus, change ...func(*corev1.Pod)) seen {
	s.Name = "engine"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{labelInstance: "perflab-x"}}}
	p.Spec.NodeName, p.Spec.Containers = "n1", []corev1.Container{{Name: "engine", Image: "image:1", Command: []string{"vllm"}}}
	p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{s}
	for _, f := range change {
		f(p)
	}
	return seen{Pod: p}
}

func ended(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

var running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

func condition(kind corev1.PodConditionType, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func TestOutcome(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	for _, c := range []struct {
		name    string
		pod     seen
		status  string
		code    int
		outside bool
		runs    bool
	}{
		{name: "runs", pod: podOf(corev1.ContainerStatus{State: running}), runs: true},
		{name: "exit", pod: podOf(corev1.ContainerStatus{State: ended(2, "Error")}), status: "exit status 2", code: 2},
		{name: "signal", pod: podOf(corev1.ContainerStatus{State: ended(143, "Error")}), status: "exit status 143 (signal: terminated)", code: 143},
		{name: "memory", pod: podOf(corev1.ContainerStatus{State: ended(137, "OOMKilled")}), status: "exit status 137 (the kernel ended it: out of memory)", code: 137},
		{
			name: "runs again", pod: podOf(corev1.ContainerStatus{State: running, RestartCount: 1, LastTerminationState: ended(1, "Error")}),
			status: "exit status 1", code: 1,
		},
		{
			name: "evicted", pod: podOf(corev1.ContainerStatus{State: ended(137, "Error")}, func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "The node was low on memory." }),
			status: "the node evicted its pod (The node was low on memory), node n1, exit status 137 (signal: killed)", code: 137, outside: true,
		},
		{
			name: "evicted before it was told of", pod: podOf(corev1.ContainerStatus{}, func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
			}),
			status: "the node evicted its pod, node n1", code: -1, outside: true,
		},
		{
			name: "preempted", pod: podOf(corev1.ContainerStatus{State: ended(0, "Completed")}, condition(corev1.DisruptionTarget, "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")),
			status: "a pod of higher priority took its place (default-scheduler: preempting to accommodate a higher priority pod), node n1, exit status 0", outside: true,
		},
		{name: "being deleted", pod: podOf(corev1.ContainerStatus{State: running}, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), runs: true},
		{
			name: "being deleted for ever", pod: podOf(corev1.ContainerStatus{State: running}, func(p *corev1.Pod) { p.DeletionTimestamp = &long }),
			status: "its pod was deleted, node n1", code: -1, outside: true,
		},
		{name: "gone", pod: seen{podOf(corev1.ContainerStatus{State: running}).Pod, true}, status: "its pod was deleted, node n1", code: -1, outside: true},
		{
			name: "silent node", pod: podOf(corev1.ContainerStatus{State: running}, condition(corev1.ContainersReady, "", ""), func(p *corev1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
			}),
			status: "its node does not answer, node n1", code: -1, outside: true,
		},
		{
			name: "not ready under load", pod: podOf(corev1.ContainerStatus{State: running}, func(p *corev1.Pod) {
				for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"})
				}
			}), runs: true,
		},
		{name: "a secret in a message", pod: podOf(corev1.ContainerStatus{State: running}, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345"
		}), status: "the node evicted its pod (HF_TOKEN=[redacted]), node n1", code: -1, outside: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, over := outcomeOf(c.pod, "engine")
			if over == c.runs {
				t.Fatalf("over is %v", over)
			}
			if o.status != c.status || o.code != c.code || o.why.Outside != c.outside {
				t.Errorf("ended with %q, %d, outside %v; want %q, %d, %v", o.status, o.code, o.why.Outside, c.status, c.code, c.outside)
			}
			if o.why.Outside && o.why.Help == "" {
				t.Error("nothing is said of what to do")
			}
		})
	}
}

func TestStanding(t *testing.T) {
	waits := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Image: "image:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	unscheduled := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	start := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: `exec: "vllm": executable file not found in $PATH`}}}
	for _, c := range []struct {
		name    string
		pod     seen
		stage   stage
		says    string // of what it waits for, or of its fault
		help    string
		lasting bool
		is      error
	}{
		{name: "queue", pod: podOf(waits("", ""), unscheduled(corev1.PodReasonSchedulingGated, "")), stage: queued, says: "queue"},
		{name: "no node", pod: podOf(waits("", ""), unscheduled("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")), stage: unplaced, says: "3 Insufficient nvidia.com/gpu"},
		{name: "no claim", pod: podOf(waits("", ""), unscheduled("Unschedulable", `0/3 nodes are available: persistentvolumeclaim "models" not found.`)), stage: unplaced, says: `"models" not found`, help: "create the PersistentVolumeClaim models", lasting: true},
		{name: "creating", pod: podOf(waits("ContainerCreating", "")), stage: preparing, says: "n1"},
		{name: "a pull that is tried again", pod: podOf(waits("ErrImagePull", "i/o timeout")), stage: preparing, says: "i/o timeout"},
		{name: "no such image", pod: podOf(waits("ErrImagePull", `"image:1": not found`)), stage: preparing, says: "not found", help: "correct its name or tag", lasting: true},
		{name: "limit", pod: podOf(waits("ImagePullBackOff", "429 Too Many Requests - toomanyrequests")), stage: preparing, says: "toomanyrequests", help: "limits pulls"},
		{name: "platform", pod: podOf(waits("ErrImagePull", "no match for platform in manifest: not supported")), stage: preparing, says: "platform", help: "nodeSelector", lasting: true},
		{name: "never pulled", pod: podOf(waits("ErrImageNeverPull", "image is not present")), stage: preparing, says: "ErrImageNeverPull", help: "imagePullPolicy", lasting: true},
		{name: "no key", pod: podOf(waits("CreateContainerConfigError", "couldn't find key token in Secret bench/hub")), stage: preparing, says: "key token in Secret bench/hub", help: "create the Secret", lasting: true},
		{name: "no program", pod: podOf(start), stage: preparing, says: "StartError", help: "vllm is not on PATH in the image image:1", lasting: true, is: exec.ErrNotFound},
		{name: "no program of a path", pod: podOf(waits("RunContainerError", `exec: "/opt/x": stat /opt/x: no such file or directory`), func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"/opt/x"} }), stage: preparing, says: "/opt/x", help: "does not exist", lasting: true, is: fs.ErrNotExist},
		{name: "not executable", pod: podOf(waits("RunContainerError", `exec: "vllm": permission denied`)), stage: preparing, says: "permission", help: "is not executable", lasting: true, is: fs.ErrPermission},
		{name: "init", pod: podOf(waits("PodInitializing", ""), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: ended(3, "Error")}}
		}), stage: preparing, says: "the init container setup of pod p on node n1 ended with exit status 3", help: "kubectl logs p -c setup"},
		{name: "runs", pod: podOf(corev1.ContainerStatus{State: running}), stage: begun},
		{name: "crashes and waits", pod: podOf(corev1.ContainerStatus{RestartCount: 2, LastTerminationState: ended(1, "Error"), State: waits("CrashLoopBackOff", "back-off 10s").State}), stage: begun},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := standingOf(c.pod.Pod, []string{"engine"})
			if s.stage != c.stage {
				t.Errorf("stage %v, want %v", s.stage, c.stage)
			}
			if c.help == "" {
				if s.bad != nil || !strings.Contains(s.why, c.says) {
					t.Errorf("%+v, want %q", s, c.says)
				}
				return
			}
			if s.bad == nil || !strings.Contains(s.bad.Error(), c.says) || !strings.Contains(s.bad.Help, c.help) || s.bad.Lasting != c.lasting {
				t.Fatalf("fault %+v, want %q (%q), lasting %v", s.bad, c.says, c.help, c.lasting)
			}
			if c.is != nil && !errors.Is(s.bad, c.is) {
				t.Errorf("%v is not known for %v", s.bad, c.is)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		message, says, help string
		lasting             bool
	}{
		{`deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in the namespace "bench"`, "this account may not patch deployments", "perflab kube role", true},
		{`pods "x" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=8`, "exceeded quota: team", "quota of the namespace raised", false},
		{`pods "x" is forbidden: failed quota: team: must specify limits.cpu for: engine`, "must specify", "set cpu and memory", true},
		{`admission webhook "policy.example" denied the request: no label`, "no label", "the webhook policy.example", true},
		{`pods "x" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes`, "PodSecurity", "use a claim", true},
		{`pods "x" is forbidden: ValidatingAdmissionPolicy 'limits' denied request`, "ValidatingAdmissionPolicy", "a policy of the cluster", true},
		{`pods "x" is forbidden: maximum cpu usage per Container is 4`, "maximum cpu", "perflab kube check", true},
	} {
		if e := refused("start", c.message); !strings.Contains(e.Error(), c.says) || !strings.Contains(e.Help, c.help) || e.Lasting != c.lasting {
			t.Errorf("of %q: %v (%s), lasting %v", c.message, e, e.Help, e.Lasting)
		}
	}
}

func TestOwnerNames(t *testing.T) {
	if got := ownerName("PERFLAB_DEPLOYMENT=ABCDEFGHIJKLMNOPQRSTUVWXYZ/3"); got != "perflab-abcdefghijkl" {
		t.Errorf("owner %q", got)
	}
	now := time.Now()
	lease := func(renewed string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"renewTime": renewed, "leaseDurationSeconds": int64(60)}}}
	}
	for age, want := range map[time.Duration]bool{0: false, leaseTime + leaseSlack - time.Second: false, leaseTime + leaseSlack + time.Second: true} {
		if got := expired(lease(now.Add(-age).UTC().Format(time.RFC3339Nano)), now); got != want {
			t.Errorf("expired after %v is %v", age, got)
		}
	}
	if expired(lease("yesterday"), now) {
		t.Error("a Lease that cannot be read counts as old")
	}
	for job, want := range map[string]string{"replica-0": "", "replica-12.decode-1": "decode-1", "replica-3.a.b": "a.b"} {
		if _, peer, err := named(job); err != nil || peer != want {
			t.Errorf("%s is %q, %v", job, peer, err)
		}
	}
}

func TestCacheClaim(t *testing.T) {
	for _, c := range []struct {
		mounts, env []string
		want        string
	}{
		{[]string{"claim:models:/root/.cache/huggingface"}, nil, "models"},
		{[]string{"claim:models:/root/.cache"}, nil, "models"},
		{[]string{"claim:models:/root/.cache/huggingface/hub"}, nil, "models"},
		{[]string{"claim:models:/root/.cache/huggingface:ro"}, nil, ""},
		{[]string{"claim:models:/models"}, nil, ""},
		{[]string{"claim:other:/data", "claim:models:/models/"}, []string{"HF_HOME=/models/hf"}, "models"},
		{[]string{"claim:models:/root/.cache/huggingface"}, []string{"HF_HOME=/models"}, ""},
		{[]string{"/data:/root/.cache/huggingface"}, nil, ""},
		{nil, nil, ""},
	} {
		s := Settings{Pods: render.Pods{Mounts: c.mounts}}
		if got := s.cacheClaim(c.env); got != c.want {
			t.Errorf("of %q with %q: %q, want %q", c.mounts, c.env, got, c.want)
		}
	}
}

// FuzzStampedLines: however a log comes in pieces, and wherever its connection was lost, each line that
// has a time is written once.
func FuzzStampedLines(f *testing.F) {
	f.Add("2026-11-26T10:00:00.000000001Z one\n2026-11-26T10:00:00.000000002Z two\n", 3, 40)
	f.Add("unable to retrieve container logs\n2026-11-26T10:00:00.5Z \n2026-11-26T10:00:01Z x y z", 1, 0)
	f.Add("\n\n2026-11-26T10:00:00Z\n", 7, 5)
	f.Add("2026-11-26T10:00:00Z one\n2026-11-26T10:00:01Z two\n2026-11-26T10:00:02Z three\n", 9, 60)
	f.Fuzz(func(t *testing.T, text string, size, cut int) {
		size, cut = max(1, size), max(0, min(cut, len(text)))
		read := func(f *follower, text string, size int, whole bool) {
			lines := &stampedLines{f: f, after: f.last}
			for len(text) > 0 {
				n := min(size, len(text))
				if got, err := lines.Write([]byte(text[:n])); got != n || err != nil {
					t.Fatalf("%d of %d bytes, %v", got, n, err)
				}
				text = text[n:]
			}
			if !whole {
				return
			}
			if err := lines.end(); err != nil {
				t.Fatal(err)
			}
		}
		once, pieces, again := new(strings.Builder), new(strings.Builder), new(strings.Builder)
		read(&follower{to: once}, text, len(text), true)
		f := &follower{to: pieces}
		read(f, text, size, true)
		if once.String() != pieces.String() {
			t.Fatalf("in pieces of %d: %q, whole %q", size, pieces, once)
		}
		read(f, text, size, true)
		if once.String() != pieces.String() {
			t.Fatalf("read again, %q is added to %q", strings.TrimPrefix(pieces.String(), once.String()), once)
		}
		if !ordered(text) {
			return // lines of the same time, or of a clock that was set back, may be taken for known
		}
		f = &follower{to: again}
		read(f, text[:cut], size, false)
		read(f, text, size, true)
		if once.String() != again.String() {
			t.Fatalf("cut off at %d and read again: %q, whole %q", cut, again, once)
		}
	})
}

// ordered reports whether each line of a log is later than the one before it.
func ordered(text string) bool {
	last := time.Time{}
	for line := range strings.Lines(text) {
		stamp, _, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			continue
		}
		if !at.After(last) {
			return false
		}
		last = at
	}
	return true
}
