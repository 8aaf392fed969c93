package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/field"
)

// Pods say how the pods of engines are made in a Kubernetes cluster.
type Pods struct {
	Namespace   string            `yaml:"namespace,omitempty" json:"namespace,omitempty" jsonschema:"description=Namespace of all objects (default: that of the context\\, else default)"`
	Resource    string            `yaml:"resource,omitempty" json:"resource,omitempty" jsonschema:"description=Resource by which accelerators are asked for\\, such as nvidia.com/mig-3g.40gb (default nvidia.com/gpu\\, or amd.com/gpu on AMD hardware); none: the pod template asks for them"`
	Mounts      []string          `yaml:"mounts,omitempty" json:"mounts,omitempty" jsonschema:"description=What engines find at a path: claim:NAME:/models[:ro] (a PersistentVolumeClaim)\\, /host/path:/models[:ro] (a directory of the node)\\, image:REFERENCE:/models (an image as a volume)"`
	ShmSize     string            `yaml:"shm_size,omitempty" json:"shm_size,omitempty" jsonschema:"description=Size of /dev/shm\\, which is memory of the pod: with a memory limit it counts in that (default 32Gi\\, or half of memory where that is less)"`
	CPU         string            `yaml:"cpu,omitempty" json:"cpu,omitempty" jsonschema:"description=CPUs of an engine's container\\, such as 16 or 500m: what it asks for and its limit (default: neither)"`
	Memory      string            `yaml:"memory,omitempty" json:"memory,omitempty" jsonschema:"description=Memory of an engine's container\\, such as 256Gi: what it asks for and its limit (default: neither)"`
	Secrets     map[string]string `yaml:"secrets,omitempty" json:"secrets,omitempty" jsonschema:"description=Environment variable -> SECRET/KEY\\, a Secret of the namespace and its key\\, such as HF_TOKEN: hub/token. perflab refers to it and never reads the value"`
	PullSecrets []string          `yaml:"pull_secrets,omitempty" json:"pull_secrets,omitempty" jsonschema:"description=Names of the Secrets by which images are pulled"`
	Queue       string            `yaml:"queue,omitempty" json:"queue,omitempty" jsonschema:"description=Kueue's LocalQueue in which pods wait for their quota"`
	Template    map[string]any    `yaml:"pod,omitempty" json:"pod,omitempty" jsonschema:"description=Pod template of the site\\, metadata and spec\\, put under what perflab writes: nodeSelector\\, affinity\\, tolerations\\, priorityClassName\\, runtimeClassName and so on. The container named engine is the engine's"`
}

// NoResource is the Resource of pods whose template asks for accelerators.
const NoResource = "none"

// Resource is the name by which device plugins offer a platform's accelerators, "" where
// it depends on the device.
func Resource(p arch.Platform) string {
	switch p {
	case arch.CUDA:
		return "nvidia.com/gpu"
	case arch.ROCm:
		return "amd.com/gpu"
	}
	return ""
}

var (
	objectName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	labelName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	resource    = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	variableKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	secretRef   = regexp.MustCompile(`^([^/]+)/([A-Za-z0-9._-]+)$`)
	cpuText     = regexp.MustCompile(`^([0-9]+m|[0-9]+(\.[0-9]{1,3})?)$`)
	sizeText    = regexp.MustCompile(`^(?i)([0-9]+)(?:([kmgt])i?b?)?$`)
)

// Validate says what keeps pods from being made so, an error with its path for each fault.
func (p Pods) Validate() error {
	errs := []error{p.validateNames(), p.validateSizes(), p.validateSecrets(), p.validateTemplate()}
	targets := map[string]bool{"/dev/shm": true, strings.TrimSuffix(filesAt, "/"): true, gateAt: true}
	for i, text := range p.Mounts {
		at := field.Index("mounts", i)
		m, err := parseVolume(text)
		switch {
		case err != nil:
			errs = append(errs, field.Errorf(at, "%v", err))
		case targets[m.target]:
			errs = append(errs, field.Errorf(at, "%s is mounted already: choose another path", m.target))
		}
		targets[m.target] = true
	}
	return errors.Join(errs...)
}

func (p Pods) validateNames() error {
	var errs []error
	if p.Namespace != "" && !labelName.MatchString(p.Namespace) {
		errs = append(errs, field.Errorf("namespace", "%q is no name of a namespace: use lower-case letters, digits and dashes", p.Namespace))
	}
	if p.Resource != "" && !resource.MatchString(p.Resource) {
		errs = append(errs, field.Errorf("resource", "%q is no name of a resource: write it as nvidia.com/gpu", p.Resource))
	}
	if p.Queue != "" && !objectName.MatchString(p.Queue) {
		errs = append(errs, field.Errorf("queue", "%q is no name of a LocalQueue: use lower-case letters, digits and dashes", p.Queue))
	}
	for i, name := range p.PullSecrets {
		if !objectName.MatchString(name) {
			errs = append(errs, field.Errorf(field.Index("pull_secrets", i), "%q is no name of a Secret: use lower-case letters, digits and dashes", name))
		}
	}
	return errors.Join(errs...)
}

func (p Pods) validateSizes() error {
	var errs []error
	if p.CPU != "" && (!cpuText.MatchString(p.CPU) || strings.Trim(p.CPU, "0.m") == "") {
		errs = append(errs, field.Errorf("cpu", "%q is no number of CPUs: write 16, 0.5 or 500m", p.CPU))
	}
	shm, err := bytesOf(p.ShmSize)
	if err != nil {
		errs = append(errs, field.Errorf("shm_size", "%v", err))
	}
	memory, err := bytesOf(p.Memory)
	if err != nil {
		errs = append(errs, field.Errorf("memory", "%v", err))
	}
	if shm > 0 && memory > 0 && shm >= memory {
		errs = append(errs, field.Errorf("shm_size", "%s leaves nothing of the memory limit %s, in which /dev/shm counts: make it smaller, or memory larger", p.ShmSize, p.Memory))
	}
	return errors.Join(errs...)
}

func (p Pods) validateSecrets() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.Secrets)) {
		m := secretRef.FindStringSubmatch(p.Secrets[name])
		switch at := field.Join("secrets", name); {
		case !variableKey.MatchString(name):
			errs = append(errs, field.Errorf("secrets", "%q is no name of an environment variable", name))
		case m == nil || !objectName.MatchString(m[1]): // its text may be the secret itself
			errs = append(errs, field.Errorf(at, "name the Secret and its key as SECRET/KEY, never the value"))
		}
	}
	return errors.Join(errs...)
}

// volume is what pods find at a path, and where it comes from.
type volume struct {
	kind           string // claim, path, image
	source, target string
	readOnly       bool
}

// parseVolume reads claim:NAME:/models[:ro], /host/path:/models[:ro] and image:REFERENCE:/models.
func parseVolume(text string) (volume, error) {
	v := volume{kind: "path"}
	rest := text
	for _, kind := range []string{"claim", "image"} {
		if after, ok := strings.CutPrefix(text, kind+":"); ok {
			v.kind, rest = kind, after
		}
	}
	rest, v.readOnly = strings.CutSuffix(rest, ":ro")
	i := strings.LastIndex(rest, ":/")
	if i <= 0 || !path.IsAbs(rest[i+1:]) || strings.Contains(rest[i+2:], ":") {
		return v, fmt.Errorf("%q: write it as claim:NAME:/models:ro, /host/path:/models:ro or image:REFERENCE:/models", text)
	}
	v.source, v.target = rest[:i], path.Clean(rest[i+1:])
	switch {
	case v.target == "/":
		return v, fmt.Errorf("%q would hide the whole image: name a directory such as /models", text)
	case v.kind == "claim" && !objectName.MatchString(v.source):
		return v, fmt.Errorf("%q: %q is no name of a PersistentVolumeClaim: use lower-case letters, digits and dashes", text, v.source)
	case v.kind == "image" && strings.ContainsAny(v.source, " \t\n"):
		return v, fmt.Errorf("%q: %q is no reference of an image", text, v.source)
	case v.kind == "path" && (!path.IsAbs(v.source) || strings.ContainsAny(v.source, ":")):
		return v, fmt.Errorf("%q: a directory of the node begins with /; of a claim write claim:NAME:/models", text)
	}
	return v, nil
}

// of is the volume in a pod.
func (v volume) of(name string) object {
	switch v.kind {
	case "claim":
		return object{{"name", name}, {"persistentVolumeClaim", object{{"claimName", v.source}}}}
	case "image":
		return object{{"name", name}, {"image", object{{"reference", v.source}}}}
	}
	return object{{"name", name}, {"hostPath", object{{"path", v.source}}}}
}

// mount is where a container has it.
func (v volume) mount(name string) object {
	out := object{{"name", name}, {"mountPath", v.target}}
	if v.readOnly || v.kind == "image" {
		out = append(out, entry{"readOnly", true})
	}
	return out
}

// bytesOf reads a size, with k, m, g or t for powers of 1024; "" is 0.
func bytesOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is no size such as 16Gi", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := 10 * (strings.Index("kmgt", strings.ToLower(m[2])) + min(1, len(m[2])))
	if err != nil || n < 1 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is no size such as 16Gi", text)
	}
	return n << shift, nil
}

// quantity writes a size as Kubernetes takes it: 32g as 32Gi.
func quantity(text string) string {
	m := sizeText.FindStringSubmatch(text)
	if m == nil || m[2] == "" {
		return text
	}
	return m[1] + map[string]string{"k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}[strings.ToLower(m[2])]
}

const usualShm = "32Gi"

// shm is the size of /dev/shm.
func (p Pods) shm() string {
	memory, err := bytesOf(p.Memory)
	usual, _ := bytesOf(usualShm)
	if p.ShmSize == "" && err == nil && memory > 0 && memory/2 < usual {
		return strconv.FormatInt(max(1, memory/2), 10)
	}
	return quantity(cmp.Or(p.ShmSize, usualShm))
}

// resources are those of a container with so many devices, requests and limits alike.
func (p Pods) resources(devices int) object {
	var list object
	if p.CPU != "" {
		list = append(list, entry{"cpu", p.CPU})
	}
	if p.Memory != "" {
		list = append(list, entry{"memory", quantity(p.Memory)})
	}
	if name := cmp.Or(p.Resource, Resource(arch.CUDA)); devices > 0 && name != NoResource {
		list = append(list, entry{name, devices})
	}
	if list == nil {
		return nil
	}
	return object{{"requests", list}, {"limits", list}}
}

// secretRef is where the value of a variable is: a Secret and its key.
func (k manifests) secretRef(variable string) (name, key string) {
	if m := secretRef.FindStringSubmatch(k.Pods.Secrets[variable]); m != nil {
		return m[1], m[2]
	}
	return k.Name + "-secrets", variable
}

// unreferenced are the variables that come from no Secret of the site.
func (p Pods) unreferenced(variables []string) []string {
	return slices.DeleteFunc(variables, func(name string) bool { return p.Secrets[name] != "" })
}
