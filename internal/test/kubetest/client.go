package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// manager is who the kit is in the fields of what it writes, and so is a test that uses
// Cluster.Client: what is left in a namespace and has another maker fails the test.
const manager = "kubetest"

// Kinds that the kit reads and writes.
var (
	podKind       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeKind      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	eventKind     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	secretKind    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configKind    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	claimKind     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumeKind    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	serviceKind   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	accountKind   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// client speaks to the API server as the administrator, without the test's door.
type client struct {
	dynamic.Interface
	http *http.Client // with the administrator's token
	url  string
}

func newClient(p *plane) (*client, error) {
	config := &rest.Config{
		Host: p.url, BearerToken: p.token, UserAgent: manager, QPS: -1, // no limit
		WarningHandler: rest.NoWarnings{}, TLSClientConfig: rest.TLSClientConfig{CAData: p.certs.authority},
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	d, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, err
	}
	return &client{Interface: d, http: h, url: p.url}, nil
}

// CloseIdleConnections closes those that nobody uses.
func (c *client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// open reads a path of the API server as it comes.
func (c *client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body) // for the message
		return nil, &statusError{res.StatusCode, strings.TrimSpace(string(text))}
	}
	return res.Body, nil
}

// statusError is an answer that is none of what was asked for.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// get reads a path of the API server.
func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	body, err := c.open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// getJSON reads a path of the API server into a value.
func (c *client) getJSON(ctx context.Context, path string, into any) error {
	text, err := c.get(ctx, path)
	if err != nil {
		return fmt.Errorf("get %s: %w", path, err)
	}
	return json.Unmarshal(text, into)
}

// in is the objects of a kind in a namespace, "" for a kind that has none.
func (c *client) in(kind schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.Resource(kind)
	}
	return c.Resource(kind).Namespace(namespace)
}

// read gets an object into a type of its own.
func (c *client) read(ctx context.Context, kind schema.GroupVersionResource, namespace, name string, into any) error {
	u, err := c.in(kind, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return decode(u, into)
}

// make creates an object of any type.
func (c *client) make(ctx context.Context, kind schema.GroupVersionResource, namespace string, object any) (*unstructured.Unstructured, error) {
	u, err := encode(object)
	if err != nil {
		return nil, err
	}
	return c.in(kind, namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: manager})
}

// merge patches an object as JSON merge patches do.
func (c *client) merge(ctx context.Context, kind schema.GroupVersionResource, namespace, name string, patch any, subresources ...string) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.in(kind, namespace).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: manager + "-site"}, subresources...)
	return err
}

// remove deletes an object at once; that it is gone already is well.
func (c *client) remove(ctx context.Context, kind schema.GroupVersionResource, namespace, name string) error {
	err := c.in(kind, namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	return ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func decode(u *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

func encode(object any) (*unstructured.Unstructured, error) {
	if m, ok := object.(map[string]any); ok {
		text, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		return u, u.UnmarshalJSON(text)
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: m}, err
}

// follow tells of each object of a kind, as it is and as it changes, until ctx ends: gone says
// that it is not there any more. After a break it tells of all again.
func (c *client) follow(ctx context.Context, kind schema.GroupVersionResource, opts metav1.ListOptions, tell func(u *unstructured.Unstructured, gone bool)) {
	known := map[types.UID]*unstructured.Unstructured{}
	for ctx.Err() == nil {
		list, err := c.Resource(kind).List(ctx, opts)
		if err != nil {
			eventually(ctx, soon, func() bool { list, err = c.Resource(kind).List(ctx, opts); return err == nil })
			if err != nil {
				continue
			}
		}
		left := known
		known = map[types.UID]*unstructured.Unstructured{}
		for i := range list.Items {
			u := &list.Items[i]
			known[u.GetUID()] = u
			delete(left, u.GetUID())
			tell(u, false)
		}
		for _, u := range left {
			tell(u, true)
		}
		watched := opts
		watched.ResourceVersion = list.GetResourceVersion()
		w, err := c.Resource(kind).Watch(ctx, watched)
		if err == nil {
			read(ctx, w, known, tell)
		}
	}
}

// read tells of what a watch sees until it ends.
func read(ctx context.Context, w watch.Interface, known map[types.UID]*unstructured.Unstructured, tell func(*unstructured.Unstructured, bool)) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.ResultChan():
			u, is := e.Object.(*unstructured.Unstructured)
			if !open || !is || e.Type == watch.Error {
				return
			}
			if e.Type == watch.Deleted {
				delete(known, u.GetUID())
				tell(u, true)
				continue
			}
			known[u.GetUID()] = u
			tell(u, false)
		}
	}
}

// Client is the cluster as the administrator sees it, for what a test makes and looks at
// itself. It does not go through the test's door.
func (c *Cluster) Client() dynamic.Interface { return c.plane.api }

// path names an object in messages.
func path(u *unstructured.Unstructured) string { return fmt.Sprintf("%s %s", u.GetKind(), u.GetName()) }

// fromJSON gives an object to a type that is no API's own.
func fromJSON(u *unstructured.Unstructured, into any) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
