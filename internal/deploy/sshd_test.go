package deploy_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/test/deploytest"
)

// sshServer is a real sshd of a test.
type sshServer struct {
	dir    string // of its keys and files
	tmp    string // TMPDIR of its sessions
	config string // of clients, with a host "there"
	port   int
}

// startSSHD starts a server; prefix runs it elsewhere, as in a network namespace.
func startSSHD(t testing.TB, address string, prefix ...string) *sshServer {
	t.Helper()
	s := deploytest.StartSSHD(t, address, nil, prefix...)
	return &sshServer{dir: s.Dir, tmp: s.Tmp, config: s.Config, port: s.Port}
}

func output(t testing.TB, name string, arg ...string) string {
	t.Helper()
	out, err := exec.Command(name, arg...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(arg, " "), err, out)
	}
	return string(out)
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runtime is perflab's to the server, which must find nothing left in the server's
// directory for temporary files when the test ends.
func (s *sshServer) runtime(t testing.TB) *deploy.SSH {
	t.Helper()
	r := quickSSH(s.config)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func quickSSH(config string) *deploy.SSH {
	return &deploy.SSH{
		Hosts: []deploy.HostEntry{{Name: "there"}}, Config: config,
		Grace: 300 * time.Millisecond, Poll: 5 * time.Millisecond, Silence: 10 * time.Second,
	}
}

// nothingIn waits until a directory is empty.
func nothingIn(t testing.TB, dir string) { deploytest.NothingIn(t, dir) }
