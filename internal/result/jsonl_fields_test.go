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

// Calls as earlier versions wrote them have neither reads nor a connection, and
// merged chunks only by their equal stamps.
func TestCallsOfEarlierVersions(t *testing.T) {
	const file = `{"index":0,"due_ns":56196212,"ready_ns":56196212,"sent_ns":56257172,"headers_ns":56657100,"end_ns":96257172,"chunk_ns":[66257172,10000000,0,20000000],"answer_ns":66257172,"finish":"length","usage":{"prompt_tokens":200,"completion_tokens":4},"status":200,"simulated":true,"want_input":200,"want_output":4}
{"index":1,"due_ns":65103332,"ready_ns":65103332,"sent_ns":65152371,"end_ns":65467071,"chunk_ns":[65400000],"chunk_tokens":[3],"status":200,"want_input":200,"want_output":8}
{"index":2,"target":1,"due_ns":66000000,"ready_ns":66000000,"sent_ns":66000000,"end_ns":66100000,"class":"connect","error":"refused"}
`
	var calls []Call
	for c, err := range ReadCalls(strings.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	var h Header
	if err := json.Unmarshal([]byte(`{"schema":"perflab.run/1","version":"(devel)","simulated":true,"started":"2026-11-21T05:21:30.080205119Z","model":"m","backend":"openai-chat","targets":["http://127.0.0.1:1"],"workload":"random","spec":{},"requests":3,"request_rate":20,"host":{"os":"linux","arch":"amd64","go":"go1.26.8","cpus":2,"gomaxprocs":2}}`), &h); err != nil {
		t.Fatal(err)
	}
	var c Client
	if err := json.Unmarshal([]byte(`{"wall_ns":1700000000,"cpu_ns":100000000,"gc_pause_ns":0,"gc_max_ns":0,"procs":2,"partial":false}`), &c); err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(h, &c, Options{}, func(yield func(Call) bool) {
		for _, c := range calls {
			if !yield(c) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"completed": 2, "failed": 1, "total_output_tokens": 7, "merged_chunks": 1, "mean_itl_ms": 15, "max_ttft_ms": 10, "mean_tpot_ms": 10,
		"duration": (96257172 - 56196212) / 1e9,
	} {
		if got := s.Figures[name]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if _, ok := s.Figures["new_connections"]; ok {
		t.Error("new_connections is there, of calls that do not tell")
	}
	if _, ok := s.Figures["mean_connect_ms"]; ok || s.Verdict.Status == Voided || s.Partial {
		t.Errorf("connect there %v, partial %v, verdict %s: %s", ok, s.Partial, s.Verdict.Status, s.Verdict.Why())
	}
	for _, name := range []string{"clock", "scheduler", "stolen"} {
		if k, _ := s.Verdict.Check(name); k.Status != Sound {
			t.Errorf("%s: %s %s", name, k.Status, k.Text)
		}
	}
}
