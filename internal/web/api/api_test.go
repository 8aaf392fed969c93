package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	jschema "github.com/santhosh-tekuri/jsonschema/v6"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// Tokens of the laboratories of the tests, by role.
var tokens = map[string]string{
	"read":       "read-0123456789abcdef0123456789abcdef",
	"launch":     "launch-0123456789abcdef0123456789abcdef",
	"administer": "administer-0123456789abcdef0123456789abcdef",
}

// lab is a laboratory with its document, against which every answer is held.
type lab struct {
	*webtest.Lab
	root  string
	paths map[string]map[string]json.RawMessage
	c     *jschema.Compiler
}

func open(t *testing.T, o web.Options) *lab {
	t.Helper()
	l := &lab{root: t.TempDir()}
	storetest.Run{N: 1, Build: "a1"}.Write(t, l.root, "one")
	storetest.Run{N: 9, Build: "a2", Simulated: true}.Write(t, l.root, "two")
	storetest.Study(t, l.root, "study", 3, 2)
	o.Roots = []string{l.root}
	if o.Guard.Token == "" && o.Guard.Tokens == "" {
		o.Guard.Tokens = filepath.Join(t.TempDir(), "tokens")
		var b []byte
		for name, role := range map[string]guard.Role{"read": guard.Read, "launch": guard.Launch, "administer": guard.Administer} {
			b = append(b, guard.TokenLine(name, role, tokens[name])+"\n"...)
		}
		if err := os.WriteFile(o.Guard.Tokens, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Lab = webtest.Open(t, o)
	l.describe(t)
	return l
}

func (l *lab) describe(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile("../../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	l.paths = d.Paths
	doc, err := jschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	l.c = jschema.NewCompiler()
	l.c.AssertFormat()
	if err := l.c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
}

var braces = regexp.MustCompile(`\\\{\w+\\\}`)

// schemaOf is where the document has the schema of an answer.
func (l *lab) schemaOf(t *testing.T, method, path string, status int) *jschema.Schema {
	t.Helper()
	for pattern := range l.paths {
		expr := "^" + braces.ReplaceAllString(regexp.QuoteMeta(pattern), `[^/]+`) + "$"
		if ok, err := regexp.MatchString(expr, path); err != nil || !ok || l.paths[pattern][strings.ToLower(method)] == nil {
			continue
		}
		at := "#/components/schemas/Problem"
		if status < 300 {
			at = "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(pattern) + "/" + strings.ToLower(method) + "/responses/2XX/content/application~1json/schema"
		}
		s, err := l.c.Compile("openapi.json" + at)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Fatalf("%s has no %s %s", "openapi.json", method, path)
	return nil
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask asks as somebody, and holds JSON against the document.
func (l *lab) ask(t *testing.T, who, method, path string, body any, header ...string) answer {
	t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		in = bytes.NewReader(b)
	case string:
		in = strings.NewReader(b)
	default:
		j, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(j)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, l.URL+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+tokens[who])
	}
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get("Content-Type") == "application/json" && strings.HasPrefix(path, "/api/") && path != "/api/v1/nothing" && !strings.Contains(path, "/files/") && path != "/api/v1/openapi.json" {
		v, err := jschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, b)
		}
		plain, _, _ := strings.Cut(path, "?")
		if err := l.schemaOf(t, method, plain, resp.StatusCode).Validate(v); err != nil {
			t.Errorf("%s %s: %v\n%s", method, path, err, b)
		}
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// read asks as somebody who may read, and wants an answer.
func (l *lab) read(t *testing.T, path string, into any) {
	t.Helper()
	a := l.ask(t, "read", http.MethodGet, path, nil)
	if a.status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// id is the ID of an entry by its name.
func (l *lab) id(t *testing.T, name string) string {
	t.Helper()
	e, err := l.Store().Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}
