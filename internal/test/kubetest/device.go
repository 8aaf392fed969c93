package kubetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// devices are the accelerators of a node that nobody has, by their resource.
type devices map[corev1.ResourceName][]string

// newDevices are those of a new machine: of each resource with a vendor's name as many as it has.
func newDevices(node string, has Resources) devices {
	d := devices{}
	for name, amount := range has {
		if n := 0; strings.Contains(name, "/") {
			_, _ = fmt.Sscan(amount, &n) // the API server refuses what is no number
			for i := range n {
				sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", node, name, i))
				d[corev1.ResourceName(name)] = append(d[corev1.ResourceName(name)], fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
			}
		}
	}
	return d
}

// assign gives a pod's containers their devices; the scheduler has seen that there are as many.
func (n *Node) assign(p *pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range p.containers {
		for name, amount := range c.spec.Resources.Limits {
			free := n.devices[name]
			take := min(int(amount.Value()), len(free))
			if take > 0 && strings.Contains(string(name), "/") {
				c.devices = append(c.devices, device{name, slices.Clone(free[:take])})
				n.devices[name] = free[take:]
			}
		}
	}
}

// device is what a container has of a resource.
type device struct {
	resource corev1.ResourceName
	ids      []string
}

// release takes back what a pod has that has ended.
func (n *Node) release(p *pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range p.containers {
		for _, d := range c.devices {
			n.devices[d.resource] = append(n.devices[d.resource], d.ids...)
		}
		c.devices = nil
	}
}

// visible is the variable by which NVIDIA's plugin says which GPUs a container has.
func visible(has []device) []string {
	for _, d := range has {
		if strings.HasPrefix(string(d.resource), "nvidia.com/") {
			return []string{"NVIDIA_VISIBLE_DEVICES=" + strings.Join(d.ids, ",")}
		}
	}
	return nil
}
