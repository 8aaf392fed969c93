package kube

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/deploy/render"
	"perflab/internal/field"
)

// Settings say in which cluster, and how, engines run.
type Settings struct {
	Kubeconfig string  `yaml:"kubeconfig,omitempty" json:"kubeconfig,omitempty" jsonschema:"description=File with the cluster and the credentials (default: KUBECONFIG\\, else ~/.kube/config\\, else the service account of the pod that perflab runs in)"`
	Context    string  `yaml:"context,omitempty" json:"context,omitempty" jsonschema:"description=Context of that file (default: the current one)"`
	Image      string  `yaml:"image,omitempty" json:"image,omitempty" jsonschema:"description=Image of engines without one of their own\\, by tag or digest; the digest that was used is recorded"`
	Reach      string  `yaml:"reach,omitempty" json:"reach,omitempty" jsonschema:"enum=pods,enum=forward,enum=service,description=How the load reaches engines: pods (at the addresses of pods) or forward (through the API server\\, for a smoke test: its latencies are not those of the engine); the default is pods where they answer from here\\, else forward\\, and the trial says so. Of an existing Service also service: at its own address\\, which is the default where it answers"`
	Download   string  `yaml:"download,omitempty" json:"download,omitempty" jsonschema:"enum=none,description=none: engines download their model themselves. By default a Job does it before the first start\\, where a claim is mounted at the model cache"`
	PendingS   float64 `yaml:"pending_timeout_s,omitempty" json:"pending_timeout_s,omitempty" jsonschema:"description=Seconds that pods may wait for a node (default 600; in a queue of Kueue no limit)"`

	Load *Agents `yaml:"load,omitempty" json:"load,omitempty" jsonschema:"description=Load from inside: agents of a fleet in pods beside the engines send it\\, to the addresses of pods (default: this machine sends it)"`

	render.Pods `yaml:",inline"`
}

// How the load reaches engines, and that nothing is downloaded.
const (
	ReachPods    = "pods"
	ReachForward = "forward"
	DownloadNone = "none"
)

const usualPending = 10 * time.Minute

// Validate says what keeps the settings from being used, an error with its path for each
// fault.
func (s Settings) Validate() error {
	errs := []error{s.Pods.Validate()}
	if s.Image == "" {
		errs = append(errs, field.Errorf("", "image is missing: name the image that has the engine"))
	} else if strings.ContainsAny(s.Image, " \t\n") {
		errs = append(errs, field.Errorf("image", "%q is no reference of an image: write it as vllm/vllm-openai:v0.17.1", s.Image))
	}
	for _, c := range []struct {
		key, value string
		may        []string
	}{{"reach", s.Reach, []string{ReachPods, ReachForward}}, {"download", s.Download, []string{DownloadNone}}} {
		if c.value != "" && !slices.Contains(c.may, c.value) {
			errs = append(errs, field.Errorf(c.key, "%q must be %s", c.value, strings.Join(c.may, " or ")))
		}
	}
	if s.Load != nil {
		errs = append(errs, field.Under("load", s.Load.Validate()))
	}
	if s.PendingS < 0 || math.IsInf(s.PendingS, 0) || math.IsNaN(s.PendingS) {
		errs = append(errs, field.Errorf("pending_timeout_s", "%v must be a number of seconds above 0", s.PendingS))
	}
	return errors.Join(errs...)
}

// Pending is how long pods may wait for a node; 0: without a limit.
func (s Settings) Pending() time.Duration {
	switch {
	case s.PendingS > 0:
		return time.Duration(s.PendingS * float64(time.Second))
	case s.Queue != "":
		return 0
	}
	return usualPending
}

// String names the cluster and the namespace for messages.
func (s Settings) String() string {
	text := "the cluster of the current context"
	if s.Context != "" {
		text = "the cluster of context " + s.Context
	}
	if s.Kubeconfig != "" {
		text += " in " + s.Kubeconfig
	}
	if s.Namespace != "" {
		text = fmt.Sprintf("namespace %s of %s", s.Namespace, text)
	}
	return text
}
