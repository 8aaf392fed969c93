package result

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fill sets every field of a value, in structs within it too, to something
// that is not its zero, so that a field that a test does not know of takes part.
func fill(t *testing.T, v reflect.Value, rng *rand.Rand) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, rng)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), rng)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rng.IntN(4), 5))
		for i := range v.Len() {
			fill(t, v.Index(i), rng)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1 + rng.Int64N(1<<40))
	case reflect.Int32:
		v.SetInt(1 + rng.Int64N(1<<20))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("a\"\\\n\x00\u2028é", 1+rng.IntN(2)))
	default:
		t.Fatalf("a call has a field of a kind that this test does not fill: %s", v.Kind())
	}
}

// Every field of a call is written and read back, alone and with the others.
func TestCallJSONHasEveryField(t *testing.T) {
	check := func(what string, c Call) {
		t.Helper()
		if len(c.Chunks)+len(c.Empty) > 0 && c.Reads == 0 {
			c.Reads = 1 // else the reads are not known
		}
		var got Call
		b := c.AppendJSON(nil)
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: read back %s: %v", what, b, err)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			t.Errorf("%s: -written +read\n%s", what, diff)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var c Call
		fill(t, reflect.ValueOf(&c).Elem(), rng)
		check("all", c)
		for i := range reflect.TypeFor[Call]().NumField() {
			var one Call
			reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(c).Field(i))
			check(reflect.TypeFor[Call]().Field(i).Name, one)
		}
	}
}
