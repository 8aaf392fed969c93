// Package openapi describes an API in the words of OpenAPI 3.1, from its routes and the Go types that
// they take and give.
//
//	b, err := openapi.Document(routes)
//
// Invariants: the same routes give the same bytes; a route that has no description is left out; a type
// whose JSON nobody can tell from its fields is an error, and not an empty schema.
//
// Deliberately absent: what routes do.
package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// Document is the OpenAPI document of routes.
func Document(routes []page.Route) ([]byte, error) {
	s := &schemas{named: object{}, types: map[string]reflect.Type{}}
	paths := object{}
	for _, r := range routes {
		if r.Doc.Summary == "" {
			continue
		}
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = strings.ReplaceAll(strings.TrimSuffix(path, "{$}"), "...}", "}")
		op, err := s.operation(r, method, path)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", r.Pattern, err)
		}
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(method)] = op
	}
	if _, err := s.of(reflect.TypeFor[page.Problem]()); err != nil {
		return nil, err
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": "perflab", "version": "1",
			"description": "The API of a laboratory's server (perflab serve). Addresses and fields are added within v1, and none is taken away: a client passes over what it does not know. Times are of UTC, in RFC 3339. What has no value is absent or null, never zero."},
		"paths": paths,
		"components": object{"schemas": s.named, "responses": usualResponses(), "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer", "description": "A token of the laboratory. A server without tokens, which serves its own machine alone, needs none."}}},
		"security": []any{object{"token": []any{}}, object{}},
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	return append(b, '\n'), err
}

func (s *schemas) operation(r page.Route, method, path string) (object, error) {
	op := object{"operationId": operationID(method, path), "summary": r.Doc.Summary, "responses": object{}}
	if r.Role > guard.Read {
		op["description"] = "Needs the role " + r.Role.String() + "."
	}
	if p := parameters(r.Doc.Query, path); len(p) > 0 {
		op["parameters"] = p
	}
	if r.Doc.Body != nil || r.Doc.Media != "" {
		body, err := s.content(r.Doc.Body, r.Doc.Media)
		if err != nil {
			return nil, err
		}
		op["requestBody"] = object{"required": true, "content": body}
	}
	responses := op["responses"].(object)
	good := object{"description": "Done."}
	if r.Doc.Answer == nil && r.Doc.Answers == "" {
		responses["204"] = good
	} else {
		content, err := s.content(r.Doc.Answer, r.Doc.Answers)
		if err != nil {
			return nil, err
		}
		good["content"] = content
		responses["2XX"] = good
	}
	s.problems(responses, r)
	return op, nil
}

// usual are the errors of every route.
var usual = map[int]string{
	400: "The request is wrong: the sentence says where.",
	401: "A token is needed, or the one that came is not known.",
	403: "The role of the token is too low, or the server does not do this.",
	404: "There is no such thing.",
	429: "Too many requests: try again after Retry-After.",
	500: "The server failed.",
}

func (s *schemas) problems(responses object, r page.Route) {
	for status := range usual {
		name := strconv.Itoa(status)
		responses[name] = object{"$ref": "#/components/responses/" + name}
	}
	for status, text := range r.Doc.Errors {
		responses[strconv.Itoa(status)] = problemResponse(text)
	}
}

func problemResponse(text string) object {
	return object{"description": text, "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}
}

func usualResponses() object {
	all := object{}
	for status, text := range usual {
		all[strconv.Itoa(status)] = problemResponse(text)
	}
	return all
}

func (s *schemas) content(v any, media string) (object, error) {
	if media == "" {
		media = "application/json"
	}
	if v == nil {
		kind := object{"type": "string"}
		if media == "application/octet-stream" || media == "application/x-tar" {
			kind = object{} // bytes, which have no schema
		}
		return object{media: object{"schema": kind}}, nil
	}
	o, err := s.of(reflect.TypeOf(v))
	return object{media: object{"schema": o}}, err
}

var inBraces = regexp.MustCompile(`\{(\w+)\}`)

func parameters(all []page.Parameter, path string) (out []object) {
	var inPath []string
	for _, m := range inBraces.FindAllStringSubmatch(path, -1) {
		inPath = append(inPath, m[1])
	}
	for _, p := range all {
		o := object{"name": p.Name, "in": "query", "description": p.Doc, "schema": object{"type": "string"}}
		switch {
		case slices.Contains(inPath, p.Name):
			o["in"], o["required"] = "path", true
		case p.Header:
			o["in"] = "header"
		}
		if p.Example != "" {
			o["example"] = p.Example
		}
		out = append(out, o)
	}
	for _, name := range inPath {
		if !slices.ContainsFunc(all, func(p page.Parameter) bool { return p.Name == name }) {
			out = append(out, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	return out
}

// operationID names an operation by its method and path: get_entries_id_files.
func operationID(method, path string) string {
	words := []string{strings.ToLower(method)}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/api/v1"), "/") {
		if part = strings.Trim(part, "{}"); part != "" {
			words = append(words, strings.NewReplacer(".", "_", "-", "_").Replace(part))
		}
	}
	return strings.Join(words, "_")
}
