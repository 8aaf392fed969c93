package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"perflab/internal/deploy"
)

// Kinds that are looked at of a Service.
var (
	serviceKind = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	sliceKind   = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
)

// find reads the Service and its pods, as far as the account may.
func (s *Service) find(ctx context.Context) (_ *served, err error) {
	op := "reach the Service " + s.Name
	if err := CheckService(s.Name, s.Port); err != nil {
		return nil, &deploy.InfraError{Op: op, Err: err, Help: "correct the name of the Service", Lasting: true}
	}
	settings := s.Settings
	name := s.Name
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		settings.Namespace, name = namespace, rest
	}
	c, err := open(op, settings)
	if err != nil {
		return nil, err
	}
	d := &served{Service: s, cluster: c, op: op, name: name, done: make(chan struct{}), may: map[string]bool{}}
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(orCause(ctx, err), d.Stop(ctx))
		}
	}()
	if err := d.rights(ctx); err != nil {
		return nil, err
	}
	if !d.may["get services"] {
		return d, d.unseen(ctx)
	}
	if err := d.read(ctx); err != nil {
		return nil, err
	}
	if err := d.findPods(ctx); err != nil {
		return nil, err
	}
	d.findGPUs(ctx)
	return d, nil
}

// rights asks what the account may do. One that may not ask is taken to have them: what fails will say so.
func (d *served) rights(ctx context.Context) error {
	for _, r := range slices.Concat(forServices, serviceExtras) {
		lacking, err := d.lacking(ctx, r)
		if err != nil && !apierrors.IsForbidden(err) {
			return d.explain(d.op+": ask which rights the account has", err)
		}
		for _, verb := range r.verbs {
			d.may[verb+" "+r.resource] = !slices.Contains(lacking, verb)
		}
	}
	return nil
}

// lack notes what is not known, and what that costs.
func (d *served) lack(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.lacks = append(d.lacks, text)
	d.tell("%s", text)
}

// unseen goes by what the user says of a Service that the account may not read.
func (d *served) unseen(ctx context.Context) error {
	d.lack("the account may not read the Service %s: its pods, their nodes and their metrics are not known, and that one is replaced in the middle is not seen (perflab kube role --service prints what it needs)", d.full())
	port, err := strconv.Atoi(d.Port)
	host := d.name + "." + d.namespace + ".svc"
	switch {
	case len(d.URLs) > 0:
	case err != nil || !connects(ctx, hostPort(host, port)):
		return &deploy.InfraError{
			Op: d.op, Err: fmt.Errorf("this account may not get services in the namespace %s, and %s does not answer from here", d.namespace, hostPort(host, port)),
			Help: "have the Role that perflab kube role --service prints bound to the account, or name an address that answers (urls of a study, --base-url of bench)", Lasting: true,
		}
	}
	d.port.Port = int32(port)
	return nil
}

// read gets the Service, and which of its ports serves.
func (d *served) read(ctx context.Context) error {
	d.object = new(corev1.Service)
	err := d.retry(ctx, func(ctx context.Context) error {
		u, err := d.of(serviceKind).Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return into(u, d.object)
	})
	switch {
	case apierrors.IsNotFound(err):
		return &deploy.InfraError{Op: d.op, Err: fmt.Errorf("there is no Service %s in the namespace %s", d.name, d.namespace), Help: d.others(ctx), Lasting: true}
	case err != nil:
		return d.explain(d.op, err)
	case d.object.Spec.Type == corev1.ServiceTypeExternalName:
		return &deploy.InfraError{
			Op: d.op, Err: fmt.Errorf("%s is another name for %s and has no pods", d.full(), d.object.Spec.ExternalName), Lasting: true,
			Help: "name the Service that has the pods, and the address to send to by urls (--base-url of bench)",
		}
	}
	return d.choosePort()
}

// others says which Services there are in place of one that is not.
func (d *served) others(ctx context.Context) string {
	const most = 8
	if list, err := d.of(serviceKind).List(ctx, metav1.ListOptions{}); err == nil && len(list.Items) > 0 && len(list.Items) <= most {
		var names []string
		for _, u := range list.Items {
			names = append(names, u.GetName())
		}
		return "correct the name: there " + map[bool]string{true: "is ", false: "are "}[len(names) == 1] + strings.Join(names, ", ")
	}
	return "correct the name, or the namespace before it: kubectl get services -n " + d.namespace + " lists them"
}

// choosePort finds the port that is meant.
func (d *served) choosePort() error {
	ports := slices.DeleteFunc(slices.Clone(d.object.Spec.Ports), func(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolUDP })
	if d.Port == "" && len(ports) == 1 {
		d.port = ports[0]
		return nil
	}
	var all []string
	for _, p := range ports {
		number := strconv.Itoa(int(p.Port))
		if d.Port != "" && (d.Port == p.Name || d.Port == number) {
			d.port = p
			return nil
		}
		all = append(all, strings.TrimSpace(p.Name+" "+number))
	}
	if d.Port == "" {
		return &deploy.InfraError{
			Op: d.op, Err: fmt.Errorf("%s has %d ports (%s)", d.full(), len(ports), strings.Join(all, ", ")), Lasting: true,
			Help: "say which one serves: port of a study, --kube-service NAMESPACE/NAME:PORT of bench",
		}
	}
	return &deploy.InfraError{Op: d.op, Err: fmt.Errorf("%s has no port %s", d.full(), d.Port), Help: "give one that it has, by number or name: " + strings.Join(all, ", "), Lasting: true}
}

// findPods finds the pods that take requests of the Service.
func (d *served) findPods(ctx context.Context) error {
	if !d.may["list pods"] {
		d.lack("the account may not list pods: where %s runs and its metrics are not known, and that a pod is replaced in the middle is not seen (perflab kube role --service prints what it needs)", d.full())
		return nil
	}
	var named map[string]int // ports by pod, of a Service without a selector
	if len(d.object.Spec.Selector) == 0 {
		var err error
		if named, err = d.endpoints(ctx); named == nil {
			return err
		}
	}
	d.selector = selectors.SelectorFromSet(d.object.Spec.Selector).String()
	pods, err := d.list(ctx)
	if err != nil {
		return d.explain(d.op+": list its pods", err)
	}
	waiting := ""
	for _, p := range pods {
		port, ok := named[p.Name]
		switch {
		case named != nil && !ok:
			continue
		case !ready(p.Pod):
			waiting = describePod(p.Pod) + " is not ready"
			continue
		case named == nil:
			port = portIn(p.Pod, d.port)
		}
		if port == 0 {
			return &deploy.InfraError{Op: d.op, Err: fmt.Errorf("%s has no port named %s, to which the Service leads", describePod(p.Pod), d.port.TargetPort.String()), Help: "correct targetPort of the Service, or the names of the pod's ports", Lasting: true}
		}
		d.members = append(d.members, &member{seen: p, port: port, container: serving(p.Pod, port)})
	}
	slices.SortFunc(d.members, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
	if len(d.members) > 0 {
		return nil
	}
	return &deploy.InfraError{
		Op: d.op, Err: fmt.Errorf("no pod of %s takes requests: %s", d.full(), cmp.Or(waiting, "none has the labels "+d.selector)),
		Help: "see kubectl get pods -n " + d.namespace + " -l " + d.selector + ", and measure when one is ready",
	}
}

// list follows the pods and returns those that are there; where the account may not watch them it lists them once.
func (d *served) list(ctx context.Context) ([]seen, error) {
	v := newView()
	if !d.may["watch pods"] {
		d.lack("the account may not watch pods: that one of %s is replaced in the middle is not seen", d.full())
		err := d.retry(ctx, func(ctx context.Context) error {
			list, err := d.of(podKind).List(ctx, metav1.ListOptions{LabelSelector: d.selector})
			if err == nil {
				v.replace(list.Items)
			}
			return err
		})
		pods, _, _ := v.all()
		return pods, err
	}
	d.view = v
	d.watching.Go(func() { d.cluster.follow(d.ctx, v, d.selector) })
	for {
		v.mu.Lock()
		synced, err, changed := v.synced, v.err, v.changed
		v.mu.Unlock()
		if err != nil || synced {
			pods, _, _ := v.all()
			return pods, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		}
	}
}

// endpoints are the pods of a Service without a selector, which somebody else has put into EndpointSlices, with
// the port of each; nil where they are no pods, or not known.
func (d *served) endpoints(ctx context.Context) (map[string]int, error) {
	if !d.may["list endpointslices"] {
		d.lack("%s has no selector, and the account may not list endpointslices: its pods are not known, and that one is replaced in the middle is not seen (perflab kube role --service prints what it needs)", d.full())
		return nil, nil
	}
	out := map[string]int{}
	err := d.retry(ctx, func(ctx context.Context) error {
		list, err := d.of(sliceKind).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + d.name})
		if err != nil {
			return err
		}
		for _, u := range list.Items {
			var s discoveryv1.EndpointSlice
			if err := into(&u, &s); err != nil {
				return err
			}
			d.podsOf(s, out)
		}
		return nil
	})
	if err != nil {
		return nil, d.explain(d.op+": list its endpoints", err)
	}
	if len(out) == 0 {
		d.lack("%s has no selector and no endpoint that is a pod of its namespace: where it runs and its metrics are not known, and that something is replaced in the middle is not seen", d.full())
		return nil, nil
	}
	return out, nil
}

// podsOf adds the pods of a slice that take requests, each with its port.
func (d *served) podsOf(s discoveryv1.EndpointSlice, out map[string]int) {
	i := slices.IndexFunc(s.Ports, func(p discoveryv1.EndpointPort) bool {
		return p.Port != nil && (p.Name == nil || *p.Name == d.port.Name)
	})
	if i < 0 {
		return
	}
	for _, e := range s.Endpoints {
		if r := e.TargetRef; r != nil && r.Kind == "Pod" && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
			out[r.Name] = int(*s.Ports[i].Port)
		}
	}
}

// portIn is the port of a pod that a port of a Service leads to; 0: the pod has none of that name.
func portIn(p *corev1.Pod, of corev1.ServicePort) int {
	name := of.TargetPort.StrVal
	if name == "" {
		return cmp.Or(of.TargetPort.IntValue(), int(of.Port))
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name {
				return int(port.ContainerPort)
			}
		}
	}
	return 0
}

// serving is the container of a pod that serves at a port: the one that names the port, else one with GPUs, else the first.
func serving(p *corev1.Pod, port int) string {
	all := p.Spec.Containers
	i := slices.IndexFunc(all, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(x corev1.ContainerPort) bool { return int(x.ContainerPort) == port })
	})
	if i < 0 {
		i = max(slices.IndexFunc(all, accelerated), 0)
	}
	return all[i].Name
}
