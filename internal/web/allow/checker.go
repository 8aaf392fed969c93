package allow

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/hub"
)

// Checker holds a request against a list.
type Checker struct {
	List
	Dir   string   // from which relative paths count, absolute
	Roots []string // what may be read besides Files, as directories that a server shows anyway
}

// refused is the error of a value that is not allowed. What allows it is named as the list has it.
func refused(at, value, key, entry string) error {
	return field.Errorf(at, "%.200q is not allowed: an administrator adds %s: [%s] to the allow list of perflab serve", value, key, quoted(entry))
}

// quoted writes a text as YAML has it in a list.
func quoted(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./@-]*$`)

// rule decides about one value; nil: it leads to no process, file, machine, address or variable.
type rule func(c Checker, at, value string) error

// A harmless value is a number, a choice, or a text for people.
var harmless rule

// file is a path to read.
func file(c Checker, at, value string) error {
	whole, err := c.resolve(value)
	if err != nil {
		return field.Errorf(at, "%v", err)
	}
	if within(c.places(c.Files, c.Roots), whole) {
		return nil
	}
	return refused(at, value, "files", whole)
}

// resolve makes a path absolute and follows links, as far as it exists.
func (c Checker) resolve(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", errors.New("has a byte that no path has")
	}
	if strings.HasPrefix(path, "~") {
		return "", fmt.Errorf("%.200q begins with ~, which means somebody's own directory: write the whole path", path)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	return real(filepath.Clean(path))
}

// real follows the links of a path. What does not exist yet is below what does: its own name
// follows no link, for there is none.
func real(path string) (string, error) {
	whole, err := filepath.EvalSymlinks(path)
	if err == nil {
		return whole, nil
	}
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || parent == path {
		return "", fmt.Errorf("%.200q cannot be looked at: %w", path, errors.Unwrap(err))
	}
	if _, err := os.Lstat(path); err == nil { // a link to what does not exist
		return "", fmt.Errorf("%.200q is a link that leads nowhere", filepath.Base(path))
	}
	above, err := real(parent)
	return filepath.Join(above, filepath.Base(path)), err
}

// places are directories as real paths.
func (c Checker) places(lists ...[]string) []string {
	var out []string
	for _, p := range slices.Concat(lists...) {
		if whole, err := real(filepath.Clean(p)); err == nil {
			out = append(out, whole)
		}
	}
	return out
}

// name is a text that is the name of something, and of no path.
func name(_ Checker, at, value string) error {
	if strings.ContainsAny(value, "/\\~\x00") || strings.Contains(value, "..") {
		return field.Errorf(at, "%.200q looks like a path, and a name belongs here", value)
	}
	return nil
}

// nameOrFile is a repository of the model hub, or a path to read.
func nameOrFile(c Checker, at, value string) error {
	if hub.IsName(value) {
		if _, err := os.Lstat(filepath.Join(c.Dir, value)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return file(c, at, value)
}

// parameter is the value of an engine's parameter. Few are paths, which look like it.
func parameter(c Checker, at, value string) error {
	if parameterValue.MatchString(value) {
		return nil
	}
	return nameOrFile(c, at, value)
}

var parameterValue = regexp.MustCompile(`^[A-Za-z0-9_.:,+-]*$`)

// word is a text without anything that a shell, a path or an address could be made of.
func word(_ Checker, at, value string) error {
	if !wordValue.MatchString(value) || strings.HasPrefix(value, "-") {
		return field.Errorf(at, "%.200q has characters that no such name has", value)
	}
	return nil
}

var wordValue = regexp.MustCompile(`^[A-Za-z0-9_.:,=^@+-]*$`)

// from is a value that must be of one of the patterns under a key of the list.
func from(key string, patterns func(List) []string) rule {
	return func(c Checker, at, value string) error {
		if matches(patterns(c.List), value) {
			return nil
		}
		return refused(at, value, key, value)
	}
}

// exactly is a value that must stand under a key of the list as it is: in a command a * means
// something itself.
func exactly(key string, values func(List) []string) rule {
	return func(c Checker, at, value string) error {
		if slices.Contains(values(c.List), value) {
			return nil
		}
		return refused(at, value, key, value)
	}
}

// below is a directory that must be one of those under a key of the list, or below one.
func below(key string, dirs func(List) []string) rule {
	return func(c Checker, at, value string) error {
		whole, err := c.resolve(value)
		if err != nil {
			return field.Errorf(at, "%v", err)
		}
		if within(c.places(dirs(c.List)), whole) {
			return nil
		}
		return refused(at, value, key, whole)
	}
}

// variable is KEY=value, or KEY alone for the server's own value.
func variable(c Checker, at, value string) error {
	key, _, _ := strings.Cut(value, "=")
	if matches(c.Env, key) {
		return nil
	}
	return refused(at, key, "env", key) // the value may be a secret: not shown
}

// mount is SOURCE:TARGET, or SOURCE:TARGET:ro.
func mount(c Checker, at, value string) error {
	source, _, _ := strings.Cut(value, ":")
	if !strings.ContainsAny(source, "/~") && source != "." && source != ".." {
		if slices.Contains(c.Mounts, source) {
			return nil
		}
		return refused(at, value, "mounts", source)
	}
	whole, err := c.resolve(source)
	if err != nil {
		return field.Errorf(at, "%v", err)
	}
	if within(c.places(slices.DeleteFunc(slices.Clone(c.Mounts), func(m string) bool { return !filepath.IsAbs(m) })), whole) {
		return nil
	}
	return refused(at, value, "mounts", whole)
}

// setting is one of the settings of a container that lead out of it.
func setting(key string) rule {
	return func(c Checker, at, value string) error {
		if matches(c.Docker, key+"="+value) {
			return nil
		}
		return refused(at, value, "docker", key+"="+value)
	}
}

// podSetting is one of the settings of pods that lead to a cluster, or to what it has.
func podSetting(key string) rule {
	return func(c Checker, at, value string) error {
		if matches(c.Kubernetes, key+"="+value) {
			return nil
		}
		return refused(at, value, "kubernetes", key+"="+value)
	}
}

// baseURL is an address to send load to.
func baseURL(c Checker, at, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" {
		return field.Errorf(at, "%.200q is no base URL: write http://HOST:PORT", value)
	}
	if loopback(u.Hostname()) || matches(c.URLs, strings.TrimRight(value, "/")) {
		return nil
	}
	return refused(at, value, "urls", strings.TrimRight(value, "/"))
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// host is the host of an address, as perflab bench takes it.
func host(c Checker, at, value string) error {
	if loopback(value) {
		return nil
	}
	if !hostName.MatchString(value) {
		return field.Errorf(at, "%.200q is no host", value)
	}
	return baseURL(c, at, "http://"+value)
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// walk calls a function with every value of a struct that is not zero: with its pattern, which has
// "[]" for an index and "*" for a key, and its path.
func walk(v reflect.Value, pattern, at string, see func(pattern, at string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), pattern, at, see)
		}
		return
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), pattern+"[]", field.Index(at, i), see)
		}
		return
	case reflect.Map:
		for _, k := range v.MapKeys() {
			walk(v.MapIndex(k), field.Join(pattern, "*"), field.Join(at, k.String()), see)
		}
		return
	case reflect.Struct:
		if !keyed(v.Type()) {
			break
		}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if key, ok := keyOf(f); ok && len(f.Index) == 1 {
				walk(v.FieldByIndex(f.Index), field.Join(pattern, key), field.Join(at, key), see)
			}
		}
		return
	}
	if !v.IsZero() {
		see(pattern, at, v)
	}
}

// keyed reports whether a struct is a mapping in YAML, and no value of its own.
func keyed(t reflect.Type) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { _, ok := f.Tag.Lookup("yaml"); return ok })
}

// keyOf is the key of a field in YAML; "" of one whose own fields stand in its place, false of one
// that is in no file.
func keyOf(f reflect.StructField) (string, bool) {
	tag, tagged := f.Tag.Lookup("yaml")
	key, options, _ := strings.Cut(tag, ",")
	switch {
	case !tagged || key == "-" || !f.IsExported():
		return "", false
	case options == "inline":
		return "", true
	}
	return key, true
}
