package kubetest

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// usersIn is the namespace of the accounts of users, who stay when a test's namespace goes.
const usersIn = "kubetest-users"

// User makes a user who may do what the rules say in a namespace, and nothing else, and returns
// the name that Kubeconfig knows. Of namespace "" the rules are for the whole cluster.
func (c *Cluster) User(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	c.mu.Lock()
	name := fmt.Sprintf("%s-user-%d", c.id, len(c.users))
	c.users[name] = "" // taken
	c.mu.Unlock()
	api, ctx := c.plane.api, c.ctx
	_, err := api.make(ctx, namespaceKind, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": usersIn}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name}}
	if _, err := api.make(ctx, accountKind, usersIn, account); err != nil {
		t.Fatal(err)
	}
	if err := c.grant(namespace, name, rules); err != nil {
		t.Fatal(err)
	}
	c.adopt(t, usersIn, name, name)
	return name
}

// grant gives a user of the kit rights in a namespace, or, of namespace "", everywhere.
func (c *Cluster) grant(namespace, user string, rules []rbacv1.PolicyRule) error {
	kind, resource := "Role", "roles"
	if namespace == "" {
		kind, resource = "ClusterRole", "clusterroles"
	}
	group := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	role := map[string]any{"apiVersion": group.String(), "kind": kind, "metadata": map[string]any{"name": user}, "rules": rules}
	if _, err := c.plane.api.make(c.ctx, group.WithResource(resource), namespace, role); err != nil {
		return err
	}
	binding := map[string]any{
		"apiVersion": group.String(), "kind": kind + "Binding", "metadata": map[string]any{"name": user},
		"roleRef":  map[string]any{"apiGroup": group.Group, "kind": kind, "name": user},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": user, "namespace": usersIn}},
	}
	_, err := c.plane.api.make(c.ctx, group.WithResource(resource[:len(resource)-1]+"bindings"), namespace, binding)
	return err
}

// Account makes a service account of a namespace one of the users that Kubeconfig knows, and
// returns its name there.
func (c *Cluster) Account(t testing.TB, namespace, name string) string {
	t.Helper()
	user := namespace + "/" + name
	c.adopt(t, namespace, name, user)
	return user
}

// adopt takes a token of a service account for a user's.
func (c *Cluster) adopt(t testing.TB, namespace, account, user string) {
	t.Helper()
	token, err := c.plane.accountToken(c.ctx, namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users[user] = token
}

// accountToken asks for a token of a service account.
func (p *plane) accountToken(ctx context.Context, namespace, name string) (string, error) {
	ask := map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": name}, "spec": map[string]any{}}
	u, err := p.api.in(accountKind, namespace).Create(ctx, &unstructured.Unstructured{Object: ask}, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("token of service account %s in namespace %s: %w", name, namespace, err)
	}
	token, _, err := unstructured.NestedString(u.Object, "status", "token")
	return token, err
}
