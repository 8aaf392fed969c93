package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"perflab/internal/deploy"
)

// Owned is a deployment of perflab's in a namespace.
type Owned struct {
	Name    string    `json:"name"`   // of its Lease
	Holder  string    `json:"holder"` // machine and process id of its perflab
	Created time.Time `json:"created"`
	Renewed time.Time `json:"renewed"`
	Stale   bool      `json:"stale"` // its perflab has gone: the next start in the namespace removes it
	Pods    []Pod     `json:"pods"`
}

// Pod is one of a deployment.
type Pod struct {
	Name  string `json:"name"`
	Phase string `json:"phase"`
	Node  string `json:"node,omitempty"`
}

// List gives the deployments of perflabs in the namespace, the oldest first.
func List(ctx context.Context, s Settings) ([]Owned, error) {
	op := "list deployments"
	c, err := open(op, s)
	if err != nil {
		return nil, err
	}
	defer c.close()
	out, _, err := c.list(ctx)
	if err != nil {
		return nil, c.explain(op+" of the namespace "+c.namespace, err)
	}
	return out, nil
}

// open is connect without the settings that only engines need.
func open(op string, s Settings) (*cluster, error) {
	c, err := connect(s)
	if err != nil {
		return nil, &deploy.InfraError{Op: op, Err: fmt.Errorf("%s", sentence(err.Error())), Help: "correct kubeconfig, context or KUBECONFIG", Lasting: true}
	}
	return c, nil
}

func (c *cluster) list(ctx context.Context) (out []Owned, leases map[string]unstructured.Unstructured, err error) {
	ahead, err := c.clock(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := c.owners(ctx)
	if err != nil {
		return nil, nil, err
	}
	pods, err := c.of(podKind).List(ctx, metav1.ListOptions{LabelSelector: labelManager + "=" + manager})
	if err != nil {
		return nil, nil, err
	}
	leases = map[string]unstructured.Unstructured{}
	for _, l := range list {
		leases[l.GetName()] = l
		holder, _, _ := unstructured.NestedString(l.Object, "spec", "holderIdentity")
		d := Owned{Name: l.GetName(), Holder: holder, Created: l.GetCreationTimestamp().Time, Renewed: renewed(l), Stale: expired(l, time.Now().Add(ahead))}
		for _, p := range pods.Items {
			if p.GetLabels()[labelInstance] != d.Name {
				continue
			}
			phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
			node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
			d.Pods = append(d.Pods, Pod{p.GetName(), phase, node})
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Owned) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name)) })
	return out, leases, nil
}

// renewed is when a Lease was last renewed.
func renewed(l unstructured.Unstructured) time.Time {
	text, _, _ := unstructured.NestedString(l.Object, "spec", "renewTime")
	t, _ := time.Parse(time.RFC3339Nano, text) // zero where it says nothing
	return t
}

// Clean removes deployments from the namespace, and says which: those whose perflab has gone, or
// those of these names, whoever has them. What the user made, as claims and secrets, stays.
func Clean(ctx context.Context, s Settings, names ...string) (ended []string, err error) {
	op := "remove deployments"
	c, err := open(op, s)
	if err != nil {
		return nil, err
	}
	defer c.close()
	list, leases, err := c.list(ctx)
	if err != nil {
		return nil, c.explain(op+" from the namespace "+c.namespace, err)
	}
	for _, name := range names {
		if _, ok := leases[name]; !ok {
			return nil, &deploy.InfraError{Op: op, Err: fmt.Errorf("there is no deployment %s in the namespace %s", name, c.namespace), Help: "see perflab kube list", Lasting: true}
		}
	}
	for _, d := range list {
		var found bool
		switch {
		case slices.Contains(names, d.Name):
			found, err = c.end(ctx, d.Name)
		case len(names) == 0 && d.Stale:
			found, err = c.evict(ctx, leases[d.Name])
		}
		if err != nil {
			return ended, c.explain(op+": "+d.Name, err)
		}
		if found {
			ended = append(ended, d.Name)
		}
	}
	return ended, nil
}
