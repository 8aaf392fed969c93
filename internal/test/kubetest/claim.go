package kubetest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Claim makes a claim of a namespace that is bound to a directory of this machine, as the volume
// that holds a site's models is.
func (c *Cluster) Claim(t testing.TB, namespace, name, dir string) {
	t.Helper()
	api := c.plane.api
	volume := namespace + "-" + name
	size := map[string]any{"storage": "100Gi"}
	_, err := api.make(c.ctx, volumeKind, "", map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": volume}, "spec": map[string]any{
			"capacity": size, "accessModes": []any{"ReadWriteMany"}, "hostPath": map[string]any{"path": dir}, "persistentVolumeReclaimPolicy": "Retain",
			"claimRef": map[string]any{"namespace": namespace, "name": name},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// They go when no pod uses them any more.
		for _, err := range []error{api.remove(c.plane.ctx, claimKind, namespace, name), api.remove(c.plane.ctx, volumeKind, "", volume)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	_, err = api.make(c.ctx, claimKind, namespace, map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"accessModes": []any{"ReadWriteMany"}, "storageClassName": "", "volumeName": volume, "resources": map[string]any{"requests": size},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var u *unstructured.Unstructured
	if !eventually(c.ctx, soon, func() bool {
		u, err = api.in(claimKind, namespace).Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return phase == "Bound"
	}) {
		t.Fatalf("claim %s is not bound in time: %v", name, err)
	}
}
