package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"perflab/internal/store/reduction"
)

// object is a JSON object, written with its keys in order.
type object = map[string]any

// schemas makes the schema of each Go type once.
type schemas struct {
	named object
	types map[string]reflect.Type // by the name in the document
}

// written are types that write their JSON themselves.
var written = map[reflect.Type]object{
	reflect.TypeFor[time.Time]():        {"type": "string", "format": "date-time"},
	reflect.TypeFor[reduction.Points](): {"type": "array", "items": object{"type": []string{"number", "null"}}},
}

type marshaler interface{ MarshalJSON() ([]byte, error) }

// of is the schema of a type, of a struct a reference to it.
func (s *schemas) of(t reflect.Type) (object, error) {
	if o, ok := written[t]; ok {
		return o, nil
	}
	if t.Kind() != reflect.Pointer && (t.Implements(reflect.TypeFor[marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[marshaler]())) {
		return nil, fmt.Errorf("%s writes its JSON itself, and package openapi does not know how", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.orNull(t.Elem())
	case reflect.Struct:
		return s.reference(t)
	case reflect.Slice, reflect.Array:
		items, err := s.of(t.Elem())
		kind := any("array")
		if t.Kind() == reflect.Slice {
			kind = []string{"array", "null"} // one that is nil
		}
		return object{"type": kind, "items": items}, err
	case reflect.Map:
		values, err := s.of(t.Elem())
		return object{"type": []string{"object", "null"}, "additionalProperties": values}, err
	case reflect.Interface:
		return object{}, nil
	}
	return plain(t)
}

func plain(t reflect.Type) (object, error) {
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}, nil
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}, nil
	}
	return nil, fmt.Errorf("%s has no JSON", t)
}

func (s *schemas) orNull(t reflect.Type) (object, error) {
	o, err := s.of(t)
	if err != nil {
		return nil, err
	}
	if kind, ok := o["type"].(string); ok {
		o = cloned(o)
		o["type"] = []string{kind, "null"}
		return o, nil
	}
	return object{"anyOf": []any{o, object{"type": "null"}}}, nil
}

func cloned(o object) object {
	c := object{}
	maps.Copy(c, o)
	return c
}

// reference names a struct, and describes it where that was not done.
func (s *schemas) reference(t reflect.Type) (object, error) {
	name := nameOf(t)
	ref := object{"$ref": "#/components/schemas/" + name}
	if known, ok := s.types[name]; ok {
		if known != t {
			return nil, fmt.Errorf("%s and %s would have one name", known, t)
		}
		return ref, nil
	}
	s.types[name] = t
	properties, required := object{}, []string{}
	if err := s.fields(t, properties, &required); err != nil {
		return nil, err
	}
	slices.Sort(required)
	o := object{"type": "object", "properties": properties}
	if required = slices.Compact(required); len(required) > 0 {
		o["required"] = required
	}
	s.named[name] = o
	return ref, nil
}

// nameOf is the name of a type in the document: those of the API alone, others with their package, where
// that does not say the same twice.
func nameOf(t reflect.Type) string {
	pkg := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	if pkg == "api" || pkg == "page" || pkg == "" || strings.ToLower(t.Name()) == pkg {
		return t.Name()
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + t.Name()
}

// fields adds those of a struct and of what is embedded in it, whose own come first.
func (s *schemas) fields(t reflect.Type, properties object, required *[]string) error {
	var embedded []reflect.Type
	for f := range structFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "":
			continue
		case f.Anonymous && name == "":
			embedded = append(embedded, f.Type)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		if _, has := properties[name]; has {
			continue
		}
		o, err := s.of(f.Type)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		properties[name] = o
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
	for _, e := range embedded {
		if e.Kind() == reflect.Pointer {
			e = e.Elem()
		}
		if err := s.fields(e, properties, required); err != nil {
			return err
		}
	}
	return nil
}

func structFields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for field := range t.Fields() {
			if !yield(field) {
				return
			}
		}
	}
}
