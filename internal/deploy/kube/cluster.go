package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kinds of objects that the runtime makes or reads.
var (
	podKind        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMapKind  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	eventKind      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	leaseKind      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deploymentKind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	groupKind      = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}
	jobKind        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// resources are the names of kinds in the API's paths.
var resources = map[string]schema.GroupVersionResource{
	"Pod": podKind, "ConfigMap": configMapKind, "Lease": leaseKind, "Deployment": deploymentKind, "LeaderWorkerSet": groupKind, "Job": jobKind,
	"Secret": secretKind,
}

const (
	manager        = "perflab" // of fields that are applied
	requestTimeout = 30 * time.Second
	apiPatience    = 60 * time.Second // with an API server that does not answer
	firstPause     = 50 * time.Millisecond
	lastPause      = 2 * time.Second
)

// cluster is a namespace of a cluster, and how to get there.
type cluster struct {
	Settings
	config    *rest.Config
	objects   dynamic.Interface
	core      *rest.RESTClient // for logs
	namespace string
	inside    bool          // perflab runs in a pod of the cluster
	patience  time.Duration // with pods that are to end, after their grace
}

// connect reads where the cluster is; nothing is sent yet.
func connect(s Settings) (*cluster, error) {
	c := &cluster{Settings: s, patience: goneWait}
	if err := c.configure(); err != nil {
		return nil, err
	}
	c.config.UserAgent = "perflab"
	c.config.WarningHandler = rest.NoWarnings{} // they are of manifests, and would be written into the terminal
	// Many deployments may be started at once, each with few requests of its own.
	c.config.QPS, c.config.Burst = 50, 100
	var err error
	if c.objects, err = dynamic.NewForConfig(c.config); err != nil {
		return nil, err
	}
	plain := rest.CopyConfig(c.config)
	plain.APIPath, plain.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	plain.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	c.core, err = rest.RESTClientFor(plain)
	return c, err
}

// configure finds the kubeconfig, as kubectl does, and the namespace.
func (c *cluster) configure() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.WarnIfAllMissing = false
	if c.Kubeconfig != "" {
		rules.ExplicitPath = home(c.Kubeconfig)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context})
	var err error
	c.config, err = loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return errors.New("no kubeconfig is there, and perflab runs in no pod")
		}
		return err
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return err
	}
	c.namespace = cmp.Or(c.Namespace, namespace, metav1.NamespaceDefault)
	if raw, err := loader.RawConfig(); err == nil && len(raw.Contexts) == 0 {
		c.inside = true
	}
	return nil
}

// home replaces a leading ~ by the home directory.
func home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if dir, err := os.UserHomeDir(); err == nil {
			return filepath.Join(dir, rest)
		}
	}
	return path
}

func (c *cluster) close() { c.core.Client.CloseIdleConnections() }

func (c *cluster) of(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	return c.objects.Resource(kind).Namespace(c.namespace)
}

// apply writes an object of perflab's, whole: what is there of it is replaced.
func (c *cluster) apply(ctx context.Context, object map[string]any) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		out, err = c.patch(ctx, object)
		return err
	})
	return out, err
}

// patch applies an object once; with metav1.DryRunAll the server does all but keep it.
func (c *cluster) patch(ctx context.Context, object map[string]any, dryRun ...string) (*unstructured.Unstructured, error) {
	u := unstructured.Unstructured{Object: object}
	kind, ok := resources[u.GetKind()]
	if !ok {
		return nil, fmt.Errorf("%s is no kind of object that perflab applies", u.GetKind())
	}
	b, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return c.of(kind).Patch(ctx, u.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: manager, Force: new(true), DryRun: dryRun})
}

// remove deletes an object, and with it what it owns. One that is gone is no error.
func (c *cluster) remove(ctx context.Context, kind schema.GroupVersionResource, name string, grace *int64) error {
	background := metav1.DeletePropagationBackground
	err := c.retry(ctx, func(ctx context.Context) error {
		return c.of(kind).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background, GracePeriodSeconds: grace})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// retry tries again where the API server does not answer, or has too much to do, until it has
// not for as long as perflab has patience.
func (c *cluster) retry(ctx context.Context, do func(context.Context) error) error {
	end := time.Now().Add(apiPatience)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		once, cancel := context.WithTimeout(ctx, requestTimeout)
		err := do(once)
		cancel()
		if err == nil || !passing(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// passing reports whether an error is of the API server's state and not of what was asked.
func passing(err error) bool {
	if status, ok := statusOfAPI(err); ok {
		code := int(status.Code)
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError && !mistyped(status)
	}
	return unreachable(err)
}

// mistyped reports whether an object has a field of another type than the API's, which the API
// server calls an error of its own.
func mistyped(s metav1.Status) bool { return strings.Contains(s.Message, "typed patch object") }

// statusOfAPI is what an API server that answers says of an error.
func statusOfAPI(err error) (metav1.Status, bool) {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return metav1.Status{}, false
	}
	return s.Status(), true
}

// unreachable reports whether a request had no answer.
func unreachable(err error) bool {
	if _, ok := statusOfAPI(err); ok || err == nil {
		return false
	}
	if credentials(err) || untrusted(err) {
		return false
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// into makes a typed object of what the API gives.
func into(u *unstructured.Unstructured, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, to)
}
