package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"perflab/internal/deploy"
)

// Service is the runtime of a Service that others run: it finds its pods, and leaves all of it alone.
type Service struct {
	Settings Settings // the cluster, and how the Service is reached
	Name     string   // NAMESPACE/NAME, or NAME in the namespace of the settings or of the context
	Port     string   // its number or its name; "": the only one that the Service has
	URLs     []string // of a gateway or an ingress before it, which is the target then
	Poll     time.Duration
	Progress func(text string) // told how the Service and its pods are reached; may be nil
}

var _ deploy.Runtime = (*Service)(nil)

// How a Service is reached, beside ReachPods and ReachForward.
const (
	ReachService = "service" // at its own address
	ReachURL     = "url"     // through what stands before it, of which the user knows the address
)

// Served is what is known of a Service and of the way to it.
type Served struct {
	Name  string   // NAMESPACE/NAME
	UID   string   // "": it could not be read
	Port  int      // of the Service
	Reach string   // ReachService, ReachPods, ReachForward or ReachURL
	Lacks []string // what is not known of it, and what is missed for that, one sentence each
}

// Attached is a Deployment that is a Service of somebody else.
type Attached interface {
	Served() Served
}

// ChangedError says that what serves behind a Service is not any more what it was: what serves since is another launch.
type ChangedError struct {
	Service string
	What    string // "pod llama-7d9f ended (its pod was deleted, node n1)"
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the pods of the Service %s have changed in the middle: %s, and what serves since is another launch", e.Service, e.What)
}

// Hint says how to go on.
func (e *ChangedError) Hint() string {
	namespace, _, _ := strings.Cut(e.Service, "/")
	return "measure again while nobody updates, scales or restarts it: kubectl get events -n " + namespace + " says why it was"
}

var (
	serviceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	portName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$`)
)

// SplitService takes NAMESPACE/NAME:PORT apart, of which the namespace and the port may be left out.
func SplitService(text string) (name, port string, err error) {
	name, port, given := strings.Cut(text, ":")
	if given && port == "" {
		return "", "", fmt.Errorf("%q has no port after the colon: write NAMESPACE/NAME:PORT, or leave out the colon", text)
	}
	return name, port, CheckService(name, port)
}

// CheckService says what is wrong with the name and the port of a Service, before a cluster is asked.
func CheckService(name, port string) error {
	parts := strings.Split(name, "/")
	if len(parts) > 2 || slices.ContainsFunc(parts, func(p string) bool { return !serviceName.MatchString(p) }) {
		return fmt.Errorf("%q is no name of a Service: write NAMESPACE/NAME, or NAME alone in the namespace of the context", name)
	}
	if port != "" && !portName.MatchString(port) {
		return fmt.Errorf("%q is no port of a Service: give its number or its name", port)
	}
	return nil
}

// Start finds the Service and its pods, chooses the way to it, and returns when it answers. Stop gives up what
// was opened for that; nothing is made in the cluster.
func (s *Service) Start(ctx context.Context, spec deploy.Spec) (_ deploy.Deployment, err error) {
	d, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Stop(ctx))
		}
	}()
	if err := d.choose(ctx); err != nil {
		return nil, err
	}
	d.meter(ctx)
	d.Deployment, err = deploy.Existing{URLs: d.targets, Poll: s.Poll}.Start(ctx, spec)
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok {
		infra.Op = d.op
		infra.Help = "see whether the port is the one that serves: kubectl get endpointslices -n " + d.namespace + " -l kubernetes.io/service-name=" + d.name
	}
	if err != nil {
		return nil, err
	}
	d.watching.Go(d.watch)
	return d, nil
}

// Sweep finds nothing: perflab starts nothing of a Service.
func (s *Service) Sweep(context.Context, string) ([]string, error) { return nil, nil }

func (s *Service) tell(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}

// served is a Service with its pods, as they were found.
type served struct {
	deploy.Deployment // of the targets
	*Service
	*cluster
	op       string
	name     string
	object   *corev1.Service // nil: the account may not read it
	port     corev1.ServicePort
	selector string // of its pods
	members  []*member
	targets  []string
	reach    string
	lacks    []string
	may      map[string]bool // by right, such as "watch pods"

	view     *view           // nil: the account may not list pods
	ctx      context.Context // of what goes on until stop
	stop     context.CancelFunc
	watching sync.WaitGroup
	forwards []*forward

	mu   sync.Mutex
	err  error
	done chan struct{} // closed with err set
	end  sync.Once
}

var (
	_ deploy.Insider = (*served)(nil)
	_ Placed         = (*served)(nil)
	_ Attached       = (*served)(nil)
)

// member is a pod of the Service.
type member struct {
	seen             // as it was when it was found
	container string // that serves
	port      int
	metrics   string // base URL by which its metrics are read, "": they are not
	through   string // ReachPods or ReachForward, of the metrics
	forward   *forward
	gpus      []string
}

func (m *member) address() string { return hostPort(m.Status.PodIP, m.port) }

// full is the name of the Service with its namespace.
func (d *served) full() string { return d.namespace + "/" + d.name }

// Served is what is known of it.
func (d *served) Served() Served {
	out := Served{Name: d.full(), Port: int(d.port.Port), Reach: d.reach, Lacks: slices.Clone(d.lacks)}
	if d.object != nil {
		out.UID = string(d.object.UID)
	}
	return out
}

// Engines are the pods whose metrics are read.
func (d *served) Engines() (out []deploy.Engine) {
	for i, m := range d.members {
		if m.metrics != "" {
			out = append(out, deploy.Engine{Replica: i, Name: m.Name, URL: m.metrics})
		}
	}
	return out
}

// Places are where the pods run.
func (d *served) Places(context.Context) (out []Place) {
	for i, m := range d.members {
		at := Place{Replica: i, Pod: m.Name, UID: string(m.UID), Node: m.Spec.NodeName, GPUs: m.gpus, Metrics: m.through}
		if s, ok := statusOf(m.Pod, m.container); ok {
			at.Image = imageOf(s)
		}
		at.Forward = d.reach == ReachForward && m.forward != nil && slices.Contains(d.targets, d.at(m.forward))
		out = append(out, at)
	}
	return out
}

// Inside is a target as pods of the cluster reach it.
func (d *served) Inside(target string) string {
	for _, f := range d.forwards {
		switch {
		case d.at(f) != target:
		case d.headless():
			return d.scheme() + "://" + hostPort(f.address, f.port)
		default:
			return d.scheme() + "://" + hostPort(d.object.Spec.ClusterIP, int(d.port.Port))
		}
	}
	return target
}

// Done is closed when the pods have changed; Err says how.
func (d *served) Done() <-chan struct{} { return d.done }

// Err says why Done is closed; nil as long as it is not.
func (d *served) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Stop gives up what was opened.
func (d *served) Stop(context.Context) error {
	d.end.Do(func() {
		d.stop()
		d.watching.Wait()
		for _, f := range d.forwards {
			f.close()
		}
		d.cluster.close()
	})
	return nil
}

// watch follows the pods until they change, or it is stopped.
func (d *served) watch() {
	if d.view == nil || len(d.members) == 0 {
		return
	}
	slow := time.NewTicker(lookEvery)
	defer slow.Stop()
	for {
		pods, changed, _ := d.view.all()
		if what := d.change(pods); what != "" {
			d.mu.Lock()
			d.err = &ChangedError{Service: d.full(), What: what}
			d.mu.Unlock()
			close(d.done)
			return
		}
		select {
		case <-d.ctx.Done():
			return
		case <-changed:
		case <-slow.C:
		}
	}
}

// change says how pods differ from those that were found, "" where they do not.
func (d *served) change(pods []seen) string {
	known := map[string]bool{}
	for _, m := range d.members {
		known[string(m.UID)] = true
		for _, now := range pods {
			if now.UID != m.UID {
				continue
			}
			if how := m.ended(now); how != "" {
				return fmt.Sprintf("%s ended (%s)", describePod(m.Pod), strings.TrimSuffix(how, ", node "+m.Spec.NodeName))
			}
		}
	}
	for _, p := range pods {
		if d.selector != "" && !known[string(p.UID)] && !p.gone && ready(p.Pod) {
			return describePod(p.Pod) + " was added"
		}
	}
	return ""
}

// ended says how a pod ended, or the container that serves in it, since it was found.
func (m *member) ended(now seen) string {
	before, _ := statusOf(m.Pod, m.container)
	s, found := statusOf(now.Pod, m.container)
	status := ""
	switch t := s.State.Terminated; {
	case t != nil:
		status = exitText(int(t.ExitCode), t.Reason, t.Message)
	case found && s.RestartCount > before.RestartCount:
		status = "its container " + m.container + " was started again"
		if t := s.LastTerminationState.Terminated; t != nil {
			status += ", " + exitText(int(t.ExitCode), t.Reason, t.Message)
		}
	}
	taken, isTaken := takenAway(now)
	if isTaken {
		return strings.TrimSuffix(taken.status+", "+status, ", ")
	}
	return cmp.Or(status, map[bool]string{true: "its pod is gone"}[now.gone])
}

// ready reports whether a pod takes requests.
func ready(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
