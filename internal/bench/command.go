package bench

import (
	"fmt"
	"reflect"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/workload"
)

// Command is the perflab bench command that repeats a workload: every
// non-zero field of the spec under its flag, and the seed.
func Command(model, backend, cache string, spec workload.Spec) string {
	words := []string{"perflab", "bench", "--base-url", "http://HOST:PORT", "--model", model, "--backend", backend}
	if cache != "" && cache != CacheUnique {
		words = append(words, "--cache", cache)
	}
	v := reflect.ValueOf(spec)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		switch x := v.Field(i).Interface().(type) {
		case workload.Rate:
			if !x.Inf() {
				words = append(words, flag, fmt.Sprint(float64(x)))
			}
		case bool:
			if x {
				words = append(words, flag)
			}
		case []string:
			if len(x) > 0 {
				words = append(words, flag, engine.Quote(strings.Join(x, ",")))
			}
		default:
			if !v.Field(i).IsZero() || name == "seed" { // bench draws a seed that is not given
				words = append(words, flag, engine.Quote(fmt.Sprint(x)))
			}
		}
	}
	return strings.Join(words, " ")
}
