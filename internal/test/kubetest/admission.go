package kubetest

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// webhookName is that of every webhook of the kit, as a site's policy has one.
const webhookName = "policy.site.example"

// review is what the API server asks a webhook about.
type review struct {
	Request struct {
		UID       string          `json:"uid"`
		Operation string          `json:"operation"`
		Object    json.RawMessage `json:"object"`
	} `json:"request"`
}

// verdict is a webhook's answer: a refusal, or a patch, or that all is well.
type verdict struct {
	refusal string
	patch   []any // JSON Patch
}

// Refuse has a webhook of the site asked about each object that somebody creates or changes in a
// namespace: what f returns, unless it is empty, is why the object is refused.
func (c *Cluster) Refuse(t testing.TB, namespace string, f func(object map[string]any) (refusal string)) {
	t.Helper()
	c.webhook(t, "ValidatingWebhookConfiguration", namespace, map[string]any{
		"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "scope": "Namespaced",
	}, func(object map[string]any) verdict { return verdict{refusal: f(object)} })
}

// webhook has f asked about the objects that a rule names, in one namespace, until the test ends.
func (c *Cluster) webhook(t testing.TB, kind, namespace string, rule map[string]any, f func(object map[string]any) verdict) {
	t.Helper()
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	heard := new(atomic.Bool)
	s := &http.Server{
		Handler: answer(f, heard), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{c.plane.certs.server}},
	}
	c.work.Go(func() { _ = s.ServeTLS(l, "", "") }) // ErrServerClosed
	group := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1"}
	group.Resource = map[string]string{"ValidatingWebhookConfiguration": "validatingwebhookconfigurations", "MutatingWebhookConfiguration": "mutatingwebhookconfigurations"}[kind]
	questions := map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE"}}
	name := fmt.Sprintf("%s.%d", c.id, l.Addr().(*net.TCPAddr).Port)
	_, err = c.plane.api.make(c.ctx, group, "", map[string]any{
		"apiVersion": group.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": webhookName, "sideEffects": "None", "timeoutSeconds": 30, "admissionReviewVersions": []any{"v1"}, "rules": []any{rule, questions},
			"clientConfig":      map[string]any{"url": "https://" + l.Addr().String() + "/", "caBundle": c.plane.certs.authority},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
		}},
	})
	t.Cleanup(func() {
		if err := c.plane.api.remove(c.plane.ctx, group, "", name); err != nil {
			t.Error(err)
		}
		_ = s.Close() // only its listener's error
	})
	if err != nil {
		t.Fatal(err)
	}
	c.awaitWebhook(t, namespace, name, heard)
}

// asking begins the names of objects by which the kit finds out whether the API server has
// heard of a webhook.
const asking = "kubetest-asks-"

// awaitWebhook has the API server ask until it asks the webhook too.
func (c *Cluster) awaitWebhook(t testing.TB, namespace, name string, heard *atomic.Bool) {
	t.Helper()
	question := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": asking + name}}}
	var err error
	if !eventually(c.ctx, soon, func() bool {
		_, err = c.plane.api.in(configKind, namespace).Create(c.ctx, question, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return heard.Load()
	}) {
		t.Fatalf("webhook %s is not asked in time: %v", name, err)
	}
}

// answer serves a webhook.
func answer(f func(object map[string]any) verdict, heard *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked review
		object := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(asked.Request.Object, &object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		v := verdict{}
		if name, _, _ := unstructured.NestedString(object, "metadata", "name"); strings.HasPrefix(name, asking) {
			heard.Store(true)
		} else {
			v = f(object)
		}
		response := map[string]any{"uid": asked.Request.UID, "allowed": v.refusal == ""}
		if v.refusal != "" {
			response["status"] = map[string]any{"message": v.refusal, "code": http.StatusForbidden}
		}
		if len(v.patch) > 0 {
			text, err := json.Marshal(v.patch)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			response["patchType"], response["patch"] = "JSONPatch", text
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the API server has gone
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
		})
	}
}
