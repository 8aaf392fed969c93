package deploy_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
)

// sshServer is a real sshd of a test, with keys of its own.
type sshServer struct {
	dir    string // of its keys and files
	tmp    string // TMPDIR of its sessions
	config string // of clients, with a host "there"
	port   int
	cmd    *exec.Cmd
}

// sshdPath finds the server, or skips the test.
func sshdPath(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("sshd")
	if err != nil {
		path = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("no sshd is installed (Debian: openssh-server)")
	}
	for _, program := range []string{"ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if os.Getuid() == 0 { // where sshd sends what is not trusted
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skip(err)
		}
	}
	return path
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

func unusedPort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startSSHD starts a server; prefix runs it elsewhere, as in a network namespace.
func startSSHD(t testing.TB, address string, prefix ...string) *sshServer {
	t.Helper()
	sshd := sshdPath(t)
	s := &sshServer{dir: t.TempDir(), port: unusedPort(t)}
	s.tmp, s.config = filepath.Join(s.dir, "tmp"), filepath.Join(s.dir, "ssh_config")
	if err := os.Mkdir(s.tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	key, host := filepath.Join(s.dir, "key"), filepath.Join(s.dir, "host")
	for _, path := range []string{key, host} {
		output(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path)
	}
	public, err := os.ReadFile(host + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.dir+"/sshd_config", fmt.Sprintf(`
Port %d
ListenAddress %s
HostKey %s
AuthorizedKeysFile %s.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
SetEnv TMPDIR=%s
`, s.port, address, host, key, s.tmp))
	writeFile(t, s.dir+"/known_hosts", fmt.Sprintf("[%s]:%d %s", address, s.port, public))
	writeFile(t, s.config, fmt.Sprintf(`
Host there
	HostName %s
	Port %d
	User %s
	IdentityFile %s
	IdentitiesOnly yes
	StrictHostKeyChecking yes
	UserKnownHostsFile %s/known_hosts
	GlobalKnownHostsFile /dev/null
`, address, s.port, me.Username, key, s.dir))
	args := append(prefix, sshd, "-D", "-E", s.dir+"/log", "-f", s.dir+"/sshd_config")
	s.cmd = exec.Command(args[0], args[1:]...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		if log, err := os.ReadFile(s.dir + "/log"); err == nil && t.Failed() {
			t.Logf("sshd says:\n%s", log)
		}
	})
	s.awaitUp(t, address)
	return s
}

func (s *sshServer) awaitUp(t testing.TB, address string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", address, s.port), time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(s.dir + "/log")
			t.Fatalf("sshd does not come up: %v: %s", err, log)
		}
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
func nothingIn(t testing.TB, dir string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		entries, err := os.ReadDir(dir)
		if err == nil && len(entries) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("left in %s: %v %v", dir, entries, err)
			return
		}
	}
}
