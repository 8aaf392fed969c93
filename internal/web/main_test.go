package web_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
)

// TestMain makes this program what a queue starts as perflab.
func TestMain(m *testing.M) {
	launch.Main()
	if len(os.Args) > 1 && (os.Args[1] == "tune" || os.Args[1] == "bench") {
		fmt.Fprintln(os.Stderr, "stand-in for perflab "+os.Args[1], webtest.Bad)
		os.Exit(4)
	}
	os.Exit(m.Run())
}

// tokens of a laboratory, by role; the file of them has their hashes.
var tokens = map[guard.Role]string{
	guard.Read:       "reading-0123456789abcdef0123456789",
	guard.Launch:     "launching-0123456789abcdef01234567",
	guard.Administer: "administering-0123456789abcdef0123",
}

// guarded are options of a laboratory in which everybody has a token. Its limits of how fast one
// client may ask are such that a test does not meet them.
func guarded(t testing.TB, roots ...string) web.Options {
	t.Helper()
	var lines []string
	for role, token := range tokens {
		lines = append(lines, guard.TokenLine(role.String()+"er", role, token))
	}
	file := filepath.Join(t.TempDir(), "tokens")
	storetest.WriteFile(t, file, []byte(strings.Join(lines, "\n")+"\n"))
	return web.Options{Roots: roots, Guard: guard.Options{Tokens: file, Limits: fast}}
}

// fast are limits that no test meets by how fast it asks.
var fast = guard.Limits{Rate: 1e6, Burst: 1e6, WrongTokens: 1e6}

// answer is what a server answered.
type answer struct {
	status int
	body   string
	header http.Header
}

// client follows no redirect.
var client = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// send sends a request. Of a stream of events its beginning is the answer.
func send(t testing.TB, r *http.Request) answer {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return a
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	a.body = string(b)
	return a
}

// request is a request by somebody who has a role.
func request(t testing.TB, method, address string, role guard.Role, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if role != guard.Nobody {
		r.Header.Set("Authorization", "Bearer "+tokens[role])
	}
	return r
}
