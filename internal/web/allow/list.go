// Package allow decides what studies and benches that are launched from a browser may use:
// programs, files, images, mounts, environment, machines, addresses and commands. What nobody
// has allowed is refused.
//
//	list, err := allow.Read("allow.yaml")
//	err = allow.Checker{List: list, Dir: "/srv/lab"}.Study(file)
//
// Every field of a study file has a row in the table of this package, and so has every flag of
// perflab bench: one without a row is refused, and a test fails. A refusal is an error of
// package field: it names the value and what an administrator writes to allow it.
//
// Absent: who may launch at all, which is a matter of roles; what a program does that was
// allowed to start.
package allow

import (
	_ "embed" // of Example
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/input"
)

// List is what an administrator allows. The zero List allows the engines of the catalogue by
// their usual names, simulated, predicted, or started on this machine, and addresses of this
// machine; no other file, image, mount, variable, machine or command.
//
// In a pattern * stands for any text.
type List struct {
	Engines      []string `yaml:"engines" json:"engines,omitempty"`             // names of the catalogue; empty: all of it
	Runtimes     []string `yaml:"runtimes" json:"runtimes,omitempty"`           // kinds of runtime; empty: all that the rest of the list makes possible
	Flags        []string `yaml:"flags" json:"flags,omitempty"`                 // patterns of flags of engines and routers with their values: --reasoning-parser=*
	EngineConfig []string `yaml:"engine_config" json:"engine_config,omitempty"` // patterns of keys of an engine's configuration file
	Env          []string `yaml:"env" json:"env,omitempty"`                     // patterns of names of environment variables
	Files        []string `yaml:"files" json:"files,omitempty"`                 // files, and directories with all below, to read
	Dirs         []string `yaml:"dirs" json:"dirs,omitempty"`                   // directories in which engines may run
	Images       []string `yaml:"images" json:"images,omitempty"`               // patterns of images
	Containers   []string `yaml:"containers" json:"containers,omitempty"`       // containers that run already, in which engines may be started
	Mounts       []string `yaml:"mounts" json:"mounts,omitempty"`               // directories with all below, and names of volumes
	Docker       []string `yaml:"docker" json:"docker,omitempty"`               // patterns of further settings of containers: ipc=host, shm_size=*
	Kubernetes   []string `yaml:"kubernetes" json:"kubernetes,omitempty"`       // patterns of settings of pods: namespace=bench, service=prod/*, mounts=claim:models:*, pod.spec.nodeSelector.*; empty: no cluster
	Hosts        []string `yaml:"hosts" json:"hosts,omitempty"`                 // patterns of machines by ssh and of Docker engines: node-*, user@node-1, tcp://node-1:2375
	SSHFiles     []string `yaml:"ssh_files" json:"ssh_files,omitempty"`         // files with keys, and configurations of ssh
	URLs         []string `yaml:"urls" json:"urls,omitempty"`                   // patterns of base URLs besides this machine's
	Hooks        []string `yaml:"hooks" json:"hooks,omitempty"`                 // shell commands, each whole
}

// Example is a list with every key, and what each means.
//
//go:embed example.yaml
var Example string

// mostList is the largest file of a list.
const mostList = 1 << 20

// Read reads a list from a YAML file.
func Read(path string) (List, error) {
	b, err := input.File(path, mostList)
	if err != nil {
		return List{}, fmt.Errorf("read the list of what launches may use: %w", err)
	}
	l, err := Parse(b)
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Parse reads a list: keys, each with a list of texts. Unknown keys are errors.
func Parse(b []byte) (List, error) {
	var l List
	if empty.Match(b) {
		return l, nil
	}
	keys := map[string][]string{}
	if err := yaml.Load(b, &keys); err != nil {
		return List{}, fmt.Errorf("this is no list of what launches may use, which has keys with lists, such as files: [/data]%s", placeOf(err))
	}
	v := reflect.ValueOf(&l).Elem()
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		key, _ := keyOf(f)
		known = append(known, key)
		v.FieldByIndex(f.Index).Set(reflect.ValueOf(keys[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) {
			return List{}, fmt.Errorf("%q is no key of a list of what launches may use: it has %s", key, strings.Join(known, ", "))
		}
	}
	return l, l.Validate()
}

// empty is a file that holds nothing but comments.
var empty = regexp.MustCompile(`\A(?:[ \t]*(?:#[^\n]*)?\r?(?:\n|\z))*\z`)

// placeOf says where in the file the first error is, where the library tells.
func placeOf(err error) string {
	var many *yaml.LoadErrors
	if !errors.As(err, &many) || len(many.Errors) == 0 || many.Errors[0].Mark.Line < 1 {
		return ""
	}
	return fmt.Sprintf(": line %d is something else", many.Errors[0].Mark.Line)
}

// Validate says what of the list means nothing.
func (l List) Validate() error {
	var errs []error
	for i, name := range l.Engines {
		if _, err := engine.ByName(name); err != nil {
			errs = append(errs, field.Errorf(field.Index("engines", i), "%v", err))
		}
	}
	for _, c := range []struct {
		key   string
		paths []string
	}{{"files", l.Files}, {"dirs", l.Dirs}, {"ssh_files", l.SSHFiles}, {"mounts", l.Mounts}} {
		for i, p := range c.paths {
			if !filepath.IsAbs(p) && (c.key != "mounts" || strings.ContainsAny(p, "/~")) {
				errs = append(errs, field.Errorf(field.Index(c.key, i), "%q must begin with /: what it is from would depend on where the server was started", p))
			}
		}
	}
	for key, patterns := range map[string][]string{"flags": l.Flags, "env": l.Env, "images": l.Images, "docker": l.Docker, "kubernetes": l.Kubernetes, "hosts": l.Hosts, "urls": l.URLs} {
		for i, p := range patterns {
			if strings.TrimSpace(p) == "" {
				errs = append(errs, field.Errorf(field.Index(key, i), "is empty: it allows nothing"))
			}
		}
	}
	return errors.Join(errs...)
}

// matches reports whether a text is of one of the patterns.
func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, text) })
}

// match reports whether a text is of a pattern, in which * stands for any text.
func match(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// within reports whether a path is one of the places, or below one. All are clean and absolute.
func within(places []string, at string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		place = path.Clean(filepath.ToSlash(place))
		at := filepath.ToSlash(at)
		return at == place || place == "/" || strings.HasPrefix(at, place+"/")
	})
}
