package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/redact"
)

// Names of containers, by which a template says things of them.
const (
	engineContainer = "engine"
	routerRole      = "router"
)

// ours are what a template cannot say of the engine's container, since it would change
// what is measured or have an engine ended under load, and why.
var ours = map[string]string{
	"command": "the study's configuration is the command", "args": "the study's configuration is the command",
	"image": "the image is that of the runtime, or of the engine", "ports": "perflab chooses the ports",
	"startupProbe": "perflab asks whether the engine is ready", "readinessProbe": "perflab asks whether the engine is ready",
	"livenessProbe": "a liveness probe ends engines under load",
}

// validateTemplate says what a pod template has that it cannot have.
func (p Pods) validateTemplate() error {
	if p.Template == nil {
		return nil
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(p.Template)) {
		if key != "metadata" && key != "spec" {
			errs = append(errs, field.Errorf("pod", "%q is no part of a pod template: it has metadata and spec", key))
		} else if _, ok := p.Template[key].(map[string]any); !ok {
			errs = append(errs, field.Errorf(field.Join("pod", key), "a mapping belongs here"))
		}
	}
	errs = append(errs, p.validatePodSpec()...)
	labels, _ := p.part("metadata")["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if _, taken := find(object{{"app", 0}, {"role", 0}, {"replica", 0}}, key); taken || strings.HasPrefix(key, recommended) {
			errs = append(errs, field.Errorf("pod.metadata.labels", "the label %s is perflab's own: choose another name", key))
		}
	}
	errs = append(errs, secretsOf("pod", p.Template)...)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	_, err := p.merge(object{{"metadata", object{{"labels", object{{"app", "x"}}}}}, {"spec", object{
		{"containers", list{object{{"name", engineContainer}, {"env", list{}}, {"volumeMounts", list{}}}}}, {"volumes", list{}},
	}}})
	return err
}

func (p Pods) validatePodSpec() (errs []error) {
	spec := p.part("spec")
	for _, key := range []string{"restartPolicy", "enableServiceLinks", "hostname", "subdomain"} {
		if _, set := spec[key]; set {
			errs = append(errs, field.Errorf("pod.spec", "%s is perflab's own: leave it out", key))
		}
	}
	containers, _ := spec["containers"].([]any)
	for i, v := range containers {
		c, _ := v.(map[string]any)
		at := field.Index("pod.spec.containers", i)
		name, _ := c["name"].(string)
		switch {
		case name == "":
			errs = append(errs, field.Errorf(at, "the container has no name: engine is the engine's"))
			continue
		case name != engineContainer && name != routerRole:
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(ours)) {
			if _, set := c[key]; set {
				errs = append(errs, field.Errorf(at, "%s cannot be set here: %s", key, ours[key]))
			}
		}
	}
	return errs
}

// part is metadata or spec of the template.
func (p Pods) part(name string) map[string]any {
	m, _ := p.Template[name].(map[string]any)
	return m
}

// secretsOf finds values of secrets in a template: what is written there is in the cluster
// for everyone who may read pods.
func secretsOf(at string, v any) (errs []error) {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		if value, ok := v["value"].(string); ok && name != "" && redact.Field(name, value) != value {
			errs = append(errs, field.Errorf(at, "the value of %s is a secret: name it in secrets as %[1]s: SECRET/KEY", name))
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, secretsOf(field.Join(at, key), v[key])...)
		}
	case []any:
		for i, e := range v {
			errs = append(errs, secretsOf(field.Index(at, i), e)...)
		}
	}
	return errs
}

// given is a value of a template, written as it is.
type given struct{ value any }

// merge puts the site's template under a pod template of perflab's. Mappings are merged key by
// key. Of lists, what has the same name (of mounts, the same path) is merged, and the rest
// follows. Where both say something of the same, perflab's stays. The site's container engine
// is for every process of an engine, and what it says of a router is for routers.
func (p Pods) merge(own object) (object, error) {
	if p.Template == nil {
		return own, nil
	}
	return mergeObject("pod", own, p.Template)
}

func mergeObject(at string, own object, site map[string]any) (object, error) {
	out := slices.Clone(own)
	for _, key := range slices.Sorted(maps.Keys(site)) {
		i, ok := find(own, key)
		if !ok {
			out = append(out, entry{key, given{site[key]}})
			continue
		}
		merged, err := mergeValue(field.Join(at, key), key, own[i].value, site[key])
		if err != nil {
			return nil, err
		}
		out[i].value = merged
	}
	return out, nil
}

func find(o object, key string) (int, bool) {
	i := slices.IndexFunc(o, func(e entry) bool { return e.key == key })
	return i, i >= 0
}

func mergeValue(at, key string, own, site any) (any, error) {
	switch own := own.(type) {
	case object:
		m, ok := site.(map[string]any)
		if !ok {
			return nil, field.Errorf(at, "a mapping belongs here")
		}
		return mergeObject(at, own, m)
	case nothing:
		if _, ok := site.(map[string]any); !ok {
			return nil, field.Errorf(at, "a mapping belongs here")
		}
		return given{site}, nil
	case list:
		l, ok := site.([]any)
		if !ok {
			return nil, field.Errorf(at, "a list belongs here")
		}
		return mergeList(at, key, own, l)
	}
	return own, nil
}

// mergeList merges what has the same name, and appends the rest.
func mergeList(at, key string, own list, site []any) (list, error) {
	out := slices.Clone(own)
	by := "name"
	if key == "volumeMounts" {
		by = "mountPath"
	}
	for i, v := range site {
		m, isMap := v.(map[string]any)
		name, named := m[by].(string)
		if isMap && key == "containers" && !named {
			return nil, field.Errorf(field.Index(at, i), "the container has no name")
		}
		matched := false
		for j := range out {
			o, ok := out[j].(object)
			if !ok || !named || !same(key, nameOf(o, by), name) {
				continue
			}
			merged, err := mergeObject(field.Index(at, i), o, m)
			if err != nil {
				return nil, err
			}
			out[j], matched = merged, true
		}
		if !matched && (key != "containers" || !isOurs(name)) {
			out = append(out, given{v})
		}
	}
	return out, nil
}

func nameOf(o object, by string) string {
	i, ok := find(o, by)
	if !ok {
		return ""
	}
	text, _ := o[i].value.(string)
	return text
}

// same reports whether what the site says of a thing is meant for one of perflab's. Several
// processes of an engine in one pod have containers of their own.
func same(key, own, site string) bool {
	if key == "containers" && site == engineContainer {
		return own != routerRole
	}
	return own == site
}

// isOurs reports whether a container is one that perflab writes, where the pod has it.
func isOurs(name string) bool { return name == engineContainer || name == routerRole }

// mountedBy reports whether the site's template mounts something at a path of engines.
func (p Pods) mountedBy(target string) bool {
	containers, _ := p.part("spec")["containers"].([]any)
	for _, v := range containers {
		c, _ := v.(map[string]any)
		mounts, _ := c["volumeMounts"].([]any)
		for _, m := range mounts {
			if m, _ := m.(map[string]any); c["name"] == engineContainer && m["mountPath"] == target {
				return true
			}
		}
	}
	return false
}

// plain is a value as JSON has it, for clients of the API.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		out := map[string]any{}
		for _, e := range v {
			if !empty(e.value) {
				out[e.key] = plain(e.value)
			}
		}
		return out
	case list:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case nothing:
		return map[string]any{}
	case given:
		return plainGiven(v.value)
	case int:
		return int64(v)
	}
	return v
}

// plainGiven is a value of a YAML or JSON file.
func plainGiven(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			out[key] = plainGiven(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainGiven(v[i])
		}
		return out
	case nil, bool, string, int64, float64:
		return v
	case int:
		return int64(v)
	}
	return fmt.Sprint(v)
}
