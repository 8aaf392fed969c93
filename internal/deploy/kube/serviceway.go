package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"perflab/internal/deploy"
)

// headless reports whether the Service has no address of its own.
func (d *served) headless() bool {
	return d.object != nil && (d.object.Spec.ClusterIP == "" || d.object.Spec.ClusterIP == corev1.ClusterIPNone)
}

// scheme is that of the port, by what the Service says of it.
func (d *served) scheme() string {
	if p := d.port.AppProtocol; d.port.Port == 443 || d.port.Name == "https" || p != nil && strings.EqualFold(*p, "https") {
		return "https"
	}
	return "http"
}

// choose chooses where requests go.
func (d *served) choose(ctx context.Context) error {
	if len(d.URLs) > 0 {
		d.reach, d.targets = ReachURL, d.URLs
		return nil
	}
	want := d.Service.Settings.Reach
	if want == ReachService && d.headless() {
		return d.noWay("it has no address of its own (clusterIP: None)", "leave reach out, or set it to pods")
	}
	if want == "" || want == ReachService {
		if at := d.own(ctx); at != "" {
			d.reach, d.targets = ReachService, []string{at}
			d.tell("requests go to the Service %s at %s", d.full(), at)
			return nil
		}
		if want == ReachService {
			return d.noWay("its address does not answer from here", "run perflab in a pod or on a node of the cluster, or set reach to forward for a smoke test")
		}
	}
	if want == "" || want == ReachPods {
		if d.podsAnswer(ctx) {
			return nil
		}
		if want == ReachPods {
			return d.noWay("the addresses of its pods do not answer from here", "run perflab in a pod or on a node of the cluster, or set reach to forward for a smoke test")
		}
	}
	return d.forwarded()
}

func (d *served) noWay(why, help string) error {
	return &deploy.InfraError{Op: d.op, Err: errors.New(why), Help: help, Lasting: true}
}

// own is the URL of the Service itself where it answers from here, "" where it does not.
func (d *served) own(ctx context.Context) string {
	port := int(d.port.Port)
	hosts := []string{d.name + "." + d.namespace + ".svc"} // which pods know
	if d.object != nil {
		if d.headless() {
			return ""
		}
		if !d.inside {
			hosts = nil
		}
		hosts = append(hosts, d.object.Spec.ClusterIP)
	}
	for _, host := range hosts {
		if connects(ctx, hostPort(host, port)) {
			return d.scheme() + "://" + hostPort(host, port)
		}
	}
	return ""
}

// podsAnswer makes the pods the targets where all of their addresses answer.
func (d *served) podsAnswer(ctx context.Context) bool {
	if len(d.members) == 0 || slices.Contains(d.each(func(m *member) bool { return connects(ctx, m.address()) }), false) {
		return false
	}
	d.reach = ReachPods
	for _, m := range d.members {
		d.targets = append(d.targets, d.scheme()+"://"+m.address())
	}
	d.tell("requests go to the pods of the Service %s, and perflab spreads them: %s", d.full(), strings.Join(d.targets, ", "))
	return true
}

// each asks something of all pods at the same time.
func (d *served) each(ask func(*member) bool) []bool {
	out := make([]bool, len(d.members))
	var asking sync.WaitGroup
	for i, m := range d.members {
		asking.Go(func() { out[i] = ask(m) })
	}
	asking.Wait()
	return out
}

// forwarded has requests go through the API server: to one of the pods, or, of a Service without an address
// of its own, to each.
func (d *served) forwarded() error {
	if len(d.members) == 0 {
		return d.noWay("its address does not answer from here, and no pod is known to which a port could be forwarded", "run perflab in a pod or on a node of the cluster, or name an address that answers (urls of a study, --base-url of bench)")
	}
	d.reach = ReachForward
	through := d.members[:1]
	if d.headless() {
		through = d.members
	}
	var names []string
	for _, m := range through {
		if err := d.open(m); err != nil {
			return err
		}
		d.targets, names = append(d.targets, d.at(m.forward)), append(names, m.Name)
	}
	why := "its address does not answer from here"
	if d.Service.Settings.Reach == ReachForward {
		why = "reach says so"
	}
	d.tell("requests go to %s of the Service %s by a port-forward through the API server, since %s: its delay and limits are part of all figures", map[bool]string{true: "pod ", false: "pods "}[len(names) == 1]+strings.Join(names, ", "), d.full(), why)
	return nil
}

// at is the URL of a forwarded port.
func (d *served) at(f *forward) string { return d.scheme() + "://" + f.Addr().String() }

// open forwards a port to a pod, unless one is.
func (d *served) open(m *member) (err error) {
	if m.forward != nil {
		return nil
	}
	if m.forward, err = d.forwardTo(m.Name, m.port, m.Status.PodIP); err != nil {
		return d.explain(d.op+": forward a port of pod "+m.Name, err)
	}
	d.forwards = append(d.forwards, m.forward)
	return nil
}

// meter finds how the metrics of each pod are read: at its address, else by a port-forward. That they cannot be costs the
// run nothing else.
func (d *served) meter(ctx context.Context) {
	direct := d.each(func(m *member) bool { return d.Service.Settings.Reach != ReachForward && answers(ctx, m.address()) })
	var refused error
	for i, m := range d.members {
		switch {
		case direct[i]:
			m.metrics, m.through = d.scheme()+"://"+m.address(), ReachPods
		case refused == nil:
			if refused = d.open(m); refused == nil {
				m.metrics, m.through = d.at(m.forward), ReachForward
			}
		}
	}
	if refused != nil {
		d.lack("the metrics of pods of %s are not read, whose addresses do not answer from here: %v", d.full(), refused)
	}
	how := map[string]int{}
	for _, m := range d.members {
		how[m.through]++
	}
	for through, text := range map[string]string{ReachPods: "at their addresses", ReachForward: "by a port-forward through the API server"} {
		if n := how[through]; n > 0 {
			d.tell("metrics of %s of the Service %s are read %s", pods(n), d.full(), text)
		}
	}
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// gpuTime is how long pods may take to name their GPUs.
const gpuTime = 10 * time.Second

// findGPUs asks the pods for the UUIDs of their GPUs, where the account may.
func (d *served) findGPUs(ctx context.Context) {
	if !d.may["create pods/exec"] || !d.may["get pods/exec"] {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, gpuTime)
	defer cancel()
	d.each(func(m *member) bool { m.gpus = d.gpus(ctx, d.op, m.Pod); return len(m.gpus) > 0 })
}
