package bench

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/result"
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

// Repeated is the command that makes a run again: the one that made it, or of a run that a
// study made the one that repeats its workload. It is empty for what another client measured.
func Repeated(h result.Header) string {
	var s Spec
	if h.Invoked != "" || h.Imported != nil || json.Unmarshal(h.Spec, &s) != nil {
		return h.Invoked
	}
	return Command(h.Model, h.Backend, h.Cache, s.Workload)
}
