package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

type inner struct {
	A int    `json:"a"`
	B string `json:"b,omitempty"`
}

type outer struct {
	inner
	B    float64           `json:"b"` // in place of inner's
	P    *inner            `json:"p"`
	N    *float64          `json:"n,omitempty"`
	L    []inner           `json:"l"`
	M    map[string]*outer `json:"m,omitempty"`
	T    time.Time         `json:"t,omitzero"`
	Any  any               `json:"any"`
	Skip chan int          `json:"-"`
	Bare bool
}

type own struct{}

func (own) MarshalJSON() ([]byte, error) { return nil, nil }

// TestSchemas: a schema says of each field what encoding/json makes of it.
func TestSchemas(t *testing.T) {
	s := &schemas{named: object{}, types: map[string]reflect.Type{}}
	if _, err := s.of(reflect.TypeFor[outer]()); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s.named["Openapiouter"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"properties":{"Bare":{"type":"boolean"},"a":{"type":"integer"},"any":{},"b":{"type":"number"},` +
		`"l":{"items":{"$ref":"#/components/schemas/Openapiinner"},"type":["array","null"]},` +
		`"m":{"additionalProperties":{"anyOf":[{"$ref":"#/components/schemas/Openapiouter"},{"type":"null"}]},"type":["object","null"]},` +
		`"n":{"type":["number","null"]},"p":{"anyOf":[{"$ref":"#/components/schemas/Openapiinner"},{"type":"null"}]},"t":{"format":"date-time","type":"string"}},` +
		`"required":["Bare","a","any","b","l","p"],"type":"object"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	for _, bad := range []any{own{}, struct{ C chan int }{}, struct{ F func() }{}, []own{}} {
		if o, err := s.of(reflect.TypeOf(bad)); err == nil {
			t.Errorf("%T has the schema %v", bad, o)
		}
	}
}

// TestDocument: what has no description is left out, and every parameter of a path is named.
func TestDocument(t *testing.T) {
	routes := []page.Route{
		{Pattern: "GET /page"},
		{Pattern: "PUT /api/v1/x/{id}/y/{path...}", Role: guard.Administer, Doc: page.Doc{Summary: "Does.", Query: []page.Parameter{{Name: "id", Doc: "Which."}, {Name: "q"}, {Name: "H", Header: true}},
			Media: "application/octet-stream", Errors: map[int]string{409: "Taken."}}},
	}
	b, err := Document(routes)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]struct {
			OperationID, Description string
			Parameters               []struct {
				Name, In string
				Required bool
			}
			RequestBody struct{ Content map[string]any }
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Paths) != 1 {
		t.Errorf("%v", d.Paths)
	}
	op := d.Paths["/api/v1/x/{id}/y/{path}"]["put"]
	var where []string
	for _, p := range op.Parameters {
		where = append(where, p.Name+" "+p.In)
		if p.Required != (p.In == "path") {
			t.Errorf("%+v", p)
		}
	}
	if got := strings.Join(where, ", "); got != "id path, q query, H header, path path" {
		t.Error(got)
	}
	if op.OperationID != "put_x_id_y_path" || op.Description != "Needs the role administer." || op.RequestBody.Content["application/octet-stream"] == nil ||
		op.Responses["204"] == nil || op.Responses["409"] == nil || op.Responses["401"] == nil {
		t.Errorf("%+v", op)
	}
	if again, err := Document(routes); err != nil || string(again) != string(b) {
		t.Errorf("the same routes give something else: %v", err)
	}
}
