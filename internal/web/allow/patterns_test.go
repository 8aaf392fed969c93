package allow

import (
	"reflect"
	"slices"
	"testing"

	"perflab/internal/field"
	"perflab/internal/study"
)

// leaves are the patterns of all values that a type can hold.
func leaves(t reflect.Type, pattern string) []string {
	var out []string
	switch t.Kind() {
	case reflect.Pointer:
		return leaves(t.Elem(), pattern)
	case reflect.Slice:
		return leaves(t.Elem(), pattern+"[]")
	case reflect.Map:
		return leaves(t.Elem(), field.Join(pattern, "*"))
	case reflect.Struct:
		if !keyed(t) {
			break
		}
		for _, f := range reflect.VisibleFields(t) {
			if key, ok := keyOf(f); ok && len(f.Index) == 1 {
				out = append(out, leaves(f.Type, field.Join(pattern, key))...)
			}
		}
		return out
	}
	return []string{pattern}
}

// TestEveryField: each field of a study file has a row, and no row is of a field that is gone.
func TestEveryField(t *testing.T) {
	all, rules := leaves(reflect.TypeFor[study.File](), ""), studyRules()
	for _, p := range all {
		if _, ok := rules[p]; !ok {
			t.Errorf("nobody has decided what %s may lead to: give it a row in studyRules", p)
		}
	}
	for p := range rules {
		if !slices.Contains(all, p) {
			t.Errorf("a study file has no %s: remove its row", p)
		}
	}
	if len(all) < 150 {
		t.Errorf("only %d fields were found: do leaves and walk still see them?", len(all))
	}
}

// TestWalk: what leaves finds in a type, walk finds in a value.
func TestWalk(t *testing.T) {
	f := &study.File{}
	fill(reflect.ValueOf(f).Elem())
	want, seen := leaves(reflect.TypeFor[study.File](), ""), map[string]bool{}
	walk(reflect.ValueOf(f), "", "", func(pattern, _ string, _ reflect.Value) { seen[pattern] = true })
	for _, p := range want {
		if !seen[p] {
			t.Errorf("walk does not come to %s", p)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("walk comes to %d fields, and there are %d", len(seen), len(want))
	}
}

// fill sets every field.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Interface:
		v.Set(reflect.ValueOf("any"))
	default:
		panic("fill knows no " + v.Kind().String())
	}
}
