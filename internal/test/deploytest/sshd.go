package deploytest

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
)

// SSHD is a real sshd of a test, with keys of its own; it ends with the test.
type SSHD struct {
	Dir     string // of its keys and files
	Tmp     string // TMPDIR of its sessions
	Config  string // of clients: each host whose name begins with "there" is the server
	Address string
	Port    int
}

// NeedSSHD returns the path of the server, or skips the test.
func NeedSSHD(t testing.TB) string {
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

// StartSSHD starts a server at an address, whose sessions have env (KEY=value) in their
// environment; prefix runs it elsewhere, as in a network namespace. Where no sshd is
// installed the test is skipped.
func StartSSHD(t testing.TB, address string, env []string, prefix ...string) *SSHD {
	t.Helper()
	sshd := NeedSSHD(t)
	s := &SSHD{Dir: t.TempDir(), Address: address, Port: UnusedPorts(t, 1)}
	s.Tmp, s.Config = filepath.Join(s.Dir, "tmp"), filepath.Join(s.Dir, "ssh_config")
	if err := os.Mkdir(s.Tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	// HOME has no files of a shell: what a user's own start in each session may take seconds, or wait for each other.
	s.configure(t, append([]string{"TMPDIR=" + s.Tmp, "HOME=" + s.Dir}, env...))
	args := append(prefix, sshd, "-D", "-E", s.Dir+"/log", "-f", s.Dir+"/sshd_config")
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if log, err := os.ReadFile(s.Dir + "/log"); err == nil && t.Failed() {
			t.Logf("sshd says:\n%s", log)
		}
	})
	s.awaitUp(t)
	return s
}

// configure writes keys, and the configurations of server and clients.
func (s *SSHD) configure(t testing.TB, env []string) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	key, host := filepath.Join(s.Dir, "key"), filepath.Join(s.Dir, "host")
	for _, path := range []string{key, host} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	public, err := os.ReadFile(host + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"sshd_config": fmt.Sprintf(`
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
SetEnv %s
`, s.Port, s.Address, host, key, strings.Join(env, " ")),
		"known_hosts": fmt.Sprintf("[%s]:%d %s", s.Address, s.Port, public),
		"ssh_config": fmt.Sprintf(`
Host there*
	HostName %s
	Port %d
	User %s
	IdentityFile %s
	IdentitiesOnly yes
	StrictHostKeyChecking yes
	UserKnownHostsFile %s/known_hosts
	GlobalKnownHostsFile /dev/null
`, s.Address, s.Port, me.Username, key, s.Dir),
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *SSHD) awaitUp(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", s.Address, s.Port), time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(s.Dir + "/log")
			t.Fatalf("sshd does not come up: %v: %s", err, log)
		}
	}
}

// NothingIn waits until a directory is empty: what a runtime makes on a machine it also
// removes.
func NothingIn(t testing.TB, dir string) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
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
