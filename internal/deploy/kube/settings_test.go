package kube_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy/kube"
	"perflab/internal/deploy/render"
	"perflab/internal/field"
)

func TestSettingsValidate(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings kube.Settings
		want     []string
	}{
		{"an image", kube.Settings{Image: "engine:1"}, nil},
		{"all of it", kube.Settings{Image: "a/b@sha256:00", Reach: kube.ReachForward, Download: kube.DownloadNone, PendingS: 60, Pods: render.Pods{Namespace: "bench"}}, nil},
		{"nothing", kube.Settings{}, []string{": image is missing: name the image that has the engine"}},
		{"wrong ones", kube.Settings{Image: "a b", Reach: "ingress", Download: "yes", PendingS: -1, Pods: render.Pods{Namespace: "B", Mounts: []string{"x"}}}, []string{
			`namespace: "B" is no name of a namespace: use lower-case letters, digits and dashes`,
			`mounts[0]: "x": write it as claim:NAME:/models:ro, /host/path:/models:ro or image:REFERENCE:/models`,
			`image: "a b" is no reference of an image: write it as vllm/vllm-openai:v0.17.1`,
			`reach: "ingress" must be pods or forward`, `download: "yes" must be none`,
			"pending_timeout_s: -1 must be a number of seconds above 0",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range field.All(c.settings.Validate()) {
				got = append(got, e.Path+": "+e.Reason)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestPending(t *testing.T) {
	for _, c := range []struct {
		settings kube.Settings
		want     time.Duration
	}{
		{kube.Settings{}, 10 * time.Minute},
		{kube.Settings{PendingS: 90}, 90 * time.Second},
		{kube.Settings{Pods: render.Pods{Queue: "team"}}, 0},
		{kube.Settings{PendingS: 90, Pods: render.Pods{Queue: "team"}}, 90 * time.Second},
	} {
		if got := c.settings.Pending(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.settings, got, c.want)
		}
	}
}

// TestSettingsKept: settings are the same after they were written down, the pods' beside the
// others.
func TestSettingsKept(t *testing.T) {
	want := kube.Settings{Image: "i", Context: "c", Pods: render.Pods{Namespace: "n", Secrets: map[string]string{"A": "s/k"}, Template: map[string]any{"spec": map[string]any{"a": true}}}}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var flat map[string]any
	var got kube.Settings
	if err := json.Unmarshal(b, &flat); err != nil || flat["namespace"] != "n" {
		t.Errorf("%v: %s", err, b)
	}
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}
}
