package storetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
)

// Postgres is a server of the system's own package, which listens on a socket in a directory of its own
// and ends with the test.
type Postgres struct {
	bin, dir string
	as       *syscall.SysProcAttr // whom it runs as: it refuses to be root
	made     atomic.Int64
}

// StartPostgres starts a server; the test is skipped where there is none to start.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Skip("there is no PostgreSQL server below /usr/lib/postgresql: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("", "pg") // short, as the path of a socket must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &Postgres{bin: filepath.Dir(slices.Max(found)), dir: dir}
	if os.Getuid() == 0 {
		const nobody = 65534
		p.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	p.run(t, "initdb", "-D", p.data(), "-U", "perflab", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	p.Start(t)
	t.Cleanup(func() { _ = p.command("pg_ctl", "-D", p.data(), "-m", "immediate", "-w", "stop").Run() }) // unless a test stopped it
	return p
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(p.bin, name), args...)
	c.Dir, c.SysProcAttr = p.dir, p.as
	c.Env = append(os.Environ(), "LC_ALL=C", "HOME="+p.dir)
	return c
}

func (p *Postgres) run(t testing.TB, name string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	c := p.command(name, args...)
	c.Stderr = &out
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &out)
	}
}

// Start starts the server and waits until it answers.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()
	p.run(t, "pg_ctl", "-D", p.data(), "-w", "-t", "120", "-l", filepath.Join(p.dir, "log"),
		"-o", fmt.Sprintf("-k %s -c listen_addresses= -c fsync=off -c max_connections=200", p.dir), "start")
}

// Stop stops the server, and with it every connection.
func (p *Postgres) Stop(t testing.TB) {
	t.Helper()
	p.run(t, "pg_ctl", "-D", p.data(), "-m", "fast", "-w", "-t", "120", "stop")
}

// Database makes an empty database, and returns its address.
func (p *Postgres) Database(t testing.TB) string {
	t.Helper()
	name := "d" + strconv.FormatInt(p.made.Add(1), 10)
	p.run(t, "createdb", "-h", p.dir, "-U", "perflab", name)
	return fmt.Sprintf("postgres://perflab:secret-word@/%s?host=%s", name, p.dir)
}
