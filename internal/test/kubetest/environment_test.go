package kubetest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestExpand puts variables into commands as the kubelet does.
func TestExpand(t *testing.T) {
	env := []string{"A=first", "A=last", "EMPTY="}
	for text, want := range map[string]string{
		"":               "",
		"plain $A ${A}":  "plain $A ${A}",
		"$(A)/$(EMPTY)/": "last//",
		"$$(A) $$$(A)":   "$(A) $last",
		"$(NOT) $(A":     "$(NOT) $(A",
		"$":              "$",
		"$(A)$":          "last$",
	} {
		if got := expand(text, env); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

// TestPlaced puts directories into the place of mount paths, and leaves other paths alone.
func TestPlaced(t *testing.T) {
	c := &container{
		spec: corev1.Container{VolumeMounts: []corev1.VolumeMount{
			{Name: "models", MountPath: "/models"}, {Name: "cache", MountPath: "/models/cache/"}, {Name: "shared", MountPath: "/shared", SubPath: "a"},
		}},
		mounts: map[string]string{"models": "/tmp/m", "cache": "/tmp/c", "shared": "/tmp/s"},
	}
	for text, want := range map[string]string{
		"/models":                       "/tmp/m",
		"--model=/models/x":             "--model=/tmp/m/x",
		"/models/cache/y":               "/tmp/c/y",
		"/models-old /data/models":      "/models-old /data/models",
		"cat '/models/x' \"/models\"; ": "cat '/tmp/m/x' \"/tmp/m\"; ",
		"/shared/z:/models":             "/tmp/s/a/z:/tmp/m",
	} {
		if got := c.placed(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}
