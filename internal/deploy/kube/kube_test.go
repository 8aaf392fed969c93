package kube_test

import (
	"os"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/deploy/render"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/kubetest"
)

const image = "registry.example/engines/fake:v1"

func TestMain(m *testing.M) {
	deploytest.EngineMain()
	if dir := os.Getenv(ownerEnv); dir != "" {
		own(dir)
	}
	os.Exit(kubetest.Main(m))
}

// place is a namespace of a cluster with one node.
type place struct {
	*kubetest.Cluster
	*kubetest.Node
	namespace string
}

func newPlace(t *testing.T) place {
	t.Helper()
	c := kubetest.Start(t)
	ns := c.Namespace(t)
	return place{c, c.Node(t, "node-1", kubetest.Resources{"nvidia.com/gpu": "8"}), ns}
}

// runtime is one of an administrator's in the namespace, in a hurry.
func (p place) runtime(t *testing.T, change ...func(*kube.Settings)) *kube.Runtime {
	t.Helper()
	r := &kube.Runtime{
		Settings: kube.Settings{Kubeconfig: p.Kubeconfig(t, kubetest.Admin), Image: image, Pods: render.Pods{Namespace: p.namespace}},
		Grace:    time.Second, Poll: 5 * time.Millisecond, Progress: func(text string) { t.Log(text) },
	}
	for _, f := range change {
		f(&r.Settings)
	}
	t.Cleanup(r.Close)
	return r
}

func TestKube(t *testing.T) {
	t.Parallel()
	deploytest.Run(t, func(t *testing.T) deploy.Runtime { return newPlace(t).runtime(t) })
}
