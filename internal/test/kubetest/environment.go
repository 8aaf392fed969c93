package kubetest

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// environment is the container's, with the directories of volumes in place; an error says what
// it is made of and is not there.
func (c *container) environment() ([]string, error) {
	api, err := url.Parse(c.pod.node.c.plane.url)
	if err != nil {
		return nil, err
	}
	env := []string{"KUBERNETES_SERVICE_HOST=" + api.Hostname(), "KUBERNETES_SERVICE_PORT=" + api.Port()}
	env = append(env, visible(c.devices)...)
	for _, from := range c.spec.EnvFrom {
		more, err := c.envFrom(from)
		if err != nil {
			return nil, err
		}
		env = append(env, more...)
	}
	for _, v := range c.spec.Env {
		value, there, err := expand(v.Value, env), true, error(nil)
		if v.ValueFrom != nil {
			value, there, err = c.valueFrom(*v.ValueFrom)
		}
		if err != nil {
			return nil, err
		}
		if there {
			env = append(env, v.Name+"="+c.placed(value))
		}
	}
	return env, nil
}

func (c *container) envFrom(from corev1.EnvFromSource) (env []string, err error) {
	var data map[string]string
	optional := false
	switch {
	case from.ConfigMapRef != nil:
		data, err = c.pod.configMap(from.ConfigMapRef.Name)
		optional = isTrue(from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		data, err = c.pod.secret(from.SecretRef.Name)
		optional = isTrue(from.SecretRef.Optional)
	}
	if err != nil && !optional {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		env = append(env, from.Prefix+key+"="+data[key])
	}
	return env, nil
}

// valueFrom is a variable's value from elsewhere; there is false for an optional one without.
func (c *container) valueFrom(from corev1.EnvVarSource) (value string, there bool, err error) {
	var data map[string]string
	var key, what string
	var optional *bool
	switch {
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		data, err = c.pod.secret(r.Name)
		key, optional, what = r.Key, r.Optional, "Secret "+c.pod.object.Namespace+"/"+r.Name
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		data, err = c.pod.configMap(r.Name)
		key, optional, what = r.Key, r.Optional, "ConfigMap "+c.pod.object.Namespace+"/"+r.Name
	case from.FieldRef != nil:
		value, err = c.pod.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = c.resource(from.ResourceFieldRef.Resource)
		return value, true, err
	default:
		return "", false, fmt.Errorf("a variable's value comes from what kubetest does not know")
	}
	value, there = data[key]
	if err == nil && !there {
		err = fmt.Errorf("couldn't find key %s in %s", key, what)
	}
	if err != nil && isTrue(optional) {
		return "", false, nil
	}
	return value, there, err
}

// field is one of the pod's own that a container may see.
func (p *pod) field(path string) (string, error) {
	o := p.object
	if name, is := subscript(path, "metadata.labels"); is {
		return o.Labels[name], nil
	}
	if name, is := subscript(path, "metadata.annotations"); is {
		return o.Annotations[name], nil
	}
	fields := map[string]string{
		"metadata.name": o.Name, "metadata.namespace": o.Namespace, "metadata.uid": string(o.UID),
		"spec.nodeName": o.Spec.NodeName, "spec.serviceAccountName": o.Spec.ServiceAccountName,
		"status.hostIP": address, "status.hostIPs": address, "status.podIP": address, "status.podIPs": address,
	}
	value, known := fields[path]
	if !known {
		return "", fmt.Errorf("kubetest does not know the field %s", path)
	}
	return value, nil
}

// subscript is NAME of FIELD['NAME'].
func subscript(path, field string) (string, bool) {
	rest, is := strings.CutPrefix(path, field+"['")
	return strings.TrimSuffix(rest, "']"), is
}

// resource is an amount that the container has.
func (c *container) resource(name string) (string, error) {
	which, name, _ := strings.Cut(name, ".")
	list := c.spec.Resources.Limits
	if which == "requests" {
		list = c.spec.Resources.Requests
	}
	q, there := list[corev1.ResourceName(name)]
	if !there {
		return "", fmt.Errorf("container %s has no %s.%s", c.spec.Name, which, name)
	}
	return fmt.Sprint(q.Value()), nil
}

// lookup is a variable's value in an environment, where the last one counts.
func lookup(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if n, value, _ := strings.Cut(e, "="); n == name {
			return value
		}
	}
	return ""
}

// expand puts variables in the place of $(NAME); $$ is one dollar, and what is not known stays.
func expand(text string, env []string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && closed && slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }):
			b.WriteString(lookup(env, name))
			text = after
		case strings.HasPrefix(rest, "(") && closed:
			b.WriteString("$(" + name + ")")
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

// placed is a text with the directories of mounted volumes where it names their mount paths.
func (c *container) placed(text string) string {
	mounts := slices.Clone(c.spec.VolumeMounts)
	slices.SortStableFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	var b strings.Builder
	for i := 0; i < len(text); {
		at, dir := c.mountAt(mounts, text, i)
		if at == "" {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(dir)
		i += len(at)
	}
	return b.String()
}

// mountAt is the mount path that a text has at a place, with its directory; "" for none.
func (c *container) mountAt(mounts []corev1.VolumeMount, text string, i int) (at, dir string) {
	if i > 0 && (inName(text[i-1]) || text[i-1] == '/') {
		return "", ""
	}
	for _, m := range mounts {
		at := strings.TrimSuffix(m.MountPath, "/")
		rest, is := strings.CutPrefix(text[i:], at)
		if is && at != "" && (rest == "" || !inName(rest[0])) {
			return at, filepath.Join(c.mounts[m.Name], m.SubPath)
		}
	}
	return "", ""
}

// inName says whether a byte goes on with a file's name.
func inName(b byte) bool {
	return b == '_' || b == '-' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

func isTrue(b *bool) bool { return b != nil && *b }
