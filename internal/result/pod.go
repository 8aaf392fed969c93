package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pod is where a part of a deployment ran in a Kubernetes cluster.
type Pod struct {
	Replica   int      `json:"replica"`
	Name      string   `json:"name"`
	UID       string   `json:"uid"`
	Node      string   `json:"node"`
	Image     string   `json:"image,omitempty"`     // by digest
	GPUs      []string `json:"gpus,omitempty"`      // UUIDs, where the pod tells them
	Forwarded bool     `json:"forwarded,omitempty"` // requests reached it through the API server
}

// Forwarded reports whether requests went through the API server of a cluster.
func (h Header) Forwarded() bool {
	return slices.ContainsFunc(h.Pods, func(p Pod) bool { return p.Forwarded })
}

// PodsText says on which nodes pods ran: "node-1 (2 pods), node-2".
func PodsText(pods []Pod) string {
	n := map[string]int{}
	var nodes []string
	for _, p := range pods {
		node := cmp.Or(p.Node, "a node that is not known")
		if n[node]++; n[node] == 1 {
			nodes = append(nodes, node)
		}
	}
	for i, node := range nodes {
		if n[node] > 1 {
			nodes[i] = fmt.Sprintf("%s (%d pods)", node, n[node])
		}
	}
	return strings.Join(nodes, ", ")
}
