package library

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/cli/console"
	"perflab/internal/version"
	"perflab/internal/web/guard"
)

// serving is a perflab serve in this process.
type serving struct {
	url  string
	said []string // lines of standard output before the address
	stop func() error
}

// serve runs the command until it says where it is.
func serve(t *testing.T, variables map[string]string, args ...string) serving {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	env := console.Env{Args: append([]string{"serve"}, args...), Stdout: in, Stderr: t.Output(), Version: version.Read().Version,
		Getenv: func(name string) string { return variables[name] }}.Guarded()
	c := NewServe(env)
	c.SetArgs(args)
	done := make(chan error, 1) // so that it ends where nobody asks
	go func() {
		err := c.ExecuteContext(ctx)
		in.CloseWithError(io.EOF)
		done <- err
	}()
	s := serving{stop: func() error { cancel(); return <-done }}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "Laboratory: "); ok {
			s.url = at
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the command
			return s
		}
		s.said = append(s.said, lines.Text())
	}
	t.Fatalf("it does not serve: %v", s.stop())
	return s
}

// status asks the server as somebody with a token.
func status(t *testing.T, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestServe: without any directory it makes the usual one, serves it, and ends well when told to.
func TestServe(t *testing.T) {
	t.Chdir(t.TempDir())
	s := serve(t, nil, "--listen", "127.0.0.1:0")
	if got := status(t, s.url+"/healthz", ""); got != http.StatusOK {
		t.Errorf("healthz: status %d", got)
	}
	if _, err := os.Stat("perflab-out"); err != nil {
		t.Error(err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("told to end: %v", err)
	}
}

// TestServeToken: a token of the environment opens the server, and none of it is printed.
func TestServeToken(t *testing.T) {
	const token = "a-token-of-the-environment"
	dir := t.TempDir()
	s := serve(t, map[string]string{tokenVariable: token, dirVariable: dir}, "--listen", "127.0.0.1:0")
	for given, want := range map[string]int{token: http.StatusNotFound, "": http.StatusUnauthorized, "another-token-of-this-length": http.StatusUnauthorized} {
		if got := status(t, s.url+"/api/v1/no-such-thing", given); got != want {
			t.Errorf("token %q: status %d, want %d", given, got, want)
		}
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestServeNewToken: the token of the first start is where no log has it, and a second start makes none.
func TestServeNewToken(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(t.TempDir(), "state")
	args := []string{dir, "--listen", "127.0.0.1:0", "--new-token", "--state", state}
	s := serve(t, nil, args...)
	b, err := os.ReadFile(filepath.Join(state, firstTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	token := string(bytes.TrimSpace(b))
	if got := status(t, s.url+"/api/v1/no-such-thing", token); got != http.StatusNotFound {
		t.Errorf("the token that was made: status %d", got)
	}
	if said := strings.Join(s.said, "\n"); !strings.Contains(said, firstTokenFile) || strings.Contains(said, token) {
		t.Errorf("it said %s", said)
	}
	if info, err := os.Stat(filepath.Join(state, firstTokenFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(state, firstTokenFile)); err != nil {
		t.Fatal(err)
	}
	s = serve(t, nil, args...)
	if len(s.said) > 0 {
		t.Errorf("the second start said %q", s.said)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestReachable(t *testing.T) {
	for _, tt := range []struct {
		address, want string
		hosts         []string
	}{
		{"http://127.0.0.1:8790", "http://127.0.0.1:8790", []string{"lab"}},
		{"https://[::]:8790", "https://lab.example.org:8790", []string{"lab.example.org", "other"}},
		{"https://0.0.0.0:8790", "https://lab:443", []string{"lab:443"}},
		{"https://0.0.0.0:8790", "https://localhost:8790", nil},
	} {
		f := &serveFlags{}
		f.Guard = guard.Options{Hosts: tt.hosts}
		if got := f.reachable(tt.address); got != tt.want {
			t.Errorf("%s of %v: %s, want %s", tt.address, tt.hosts, got, tt.want)
		}
	}
}

func TestWithoutSecrets(t *testing.T) {
	got := withoutSecrets([]string{"PATH=/bin", "PERFLAB_TOKEN=x", "PERFLAB_STORE=y", "PERFLAB_TOKENS=z"})
	if strings.Join(got, " ") != "PATH=/bin PERFLAB_TOKENS=z" {
		t.Errorf("launches get %q", got)
	}
}
