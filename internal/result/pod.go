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
	Metrics   string   `json:"metrics,omitempty"`   // of a Service's pod: pods (read at its address) or forward; "": not read
}

// Service is what others run in a Kubernetes cluster and a run was sent to.
type Service struct {
	Name  string   `json:"name"` // NAMESPACE/NAME
	UID   string   `json:"uid,omitempty"`
	Port  int      `json:"port,omitempty"`
	Reach string   `json:"reach"`           // how requests got there, one of the constants below
	Lacks []string `json:"lacks,omitempty"` // what is not known of it, one sentence each
}

// How requests got to a Service.
const (
	ReachService = "service" // at its own address
	ReachPods    = "pods"    // at those of its pods, over which the client spread them
	ReachForward = "forward" // through the API server
	ReachURL     = "url"     // through a gateway or an ingress before it
)

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
