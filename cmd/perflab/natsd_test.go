package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"perflab/internal/test/deploytest"
)

// natsd PORT CONF prepares an outside NATS server: the program of the module that perflab embeds a hub of, as
// bin/nats-server, a certificate for this machine in cert.pem, and in CONF a configuration that includes the accounts.
func natsd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: natsd PORT CONF")
	}
	program, err := prepareNATS(ts.MkAbs("."), args[0], args[1])
	ts.Check(err)
	ts.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

// prepareNATS does so in a directory, and gives the program.
func prepareNATS(dir, port, conf string) (program string, err error) {
	in := func(name string) string { return filepath.Join(dir, name) }
	program = in("bin/nats-server")
	if text, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a NATS server: %w\n%s", err, text)
	}
	if err := certify(in("cert.pem"), in("key.pem")); err != nil {
		return "", err
	}
	text := fmt.Sprintf(`listen: "127.0.0.1:%s"
pid_file: %q
tls { cert_file: %q, key_file: %q }
jetstream { store_dir: %q, sync_interval: always }
include keys/accounts.conf
`, port, in("nats.pid"), in("cert.pem"), in("key.pem"), in("nats"))
	return program, os.WriteFile(in(conf), []byte(text), 0o600)
}

// TestServeOutside: a laboratory's server shows the agents of an outside NATS server, and says that nobody is invited from it.
func TestServeOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := deploytest.UnusedPorts(t, 2)
	nats, lab := strconv.Itoa(first), strconv.Itoa(first+1)
	in := func(args ...string) *exec.Cmd {
		cmd := perflabCommand(t, args...)
		cmd.Dir = dir
		return cmd
	}
	if out, err := in("fleet", "accounts", "load-1", "--out", "keys").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := prepareNATS(dir, nats, "nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(program, "-c", "nats.conf")
	server.Dir = dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()         // it was killed
	})
	until(t, "nats.pid", func() bool {
		_, err := os.Stat(filepath.Join(dir, "nats.pid"))
		return err == nil
	})
	at := []string{"--hub", "tls://127.0.0.1:" + nats, "--hub-ca", "cert.pem", "--hub-seed"}
	begin(t, in(append([]string{"agent", "--name", "load-1", "--dir", "one"}, append(at, "keys/load-1.nk")...)...), "Agent load-1")
	if err := os.Mkdir(filepath.Join(dir, "results"), 0o755); err != nil {
		t.Fatal(err)
	}
	begin(t, in(append([]string{"serve", "results", "--listen", "127.0.0.1:" + lab}, append(at, "keys/leader.nk")...)...), "Fleet: at the NATS server")
	ask := func(method, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+lab+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, text := ask(http.MethodGet, "/api/v1/fleet")
		if strings.Contains(text, `"outside":true`) && strings.Contains(text, `"name":"load-1"`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the fleet is %s", text)
		}
	}
	if code, text := ask(http.MethodGet, "/fleet"); code != http.StatusOK || !strings.Contains(text, "meets at an outside NATS server") || strings.Contains(text, "Invite a machine") {
		t.Errorf("the screen: %d\n%s", code, text)
	}
	if code, text := ask(http.MethodPost, "/api/v1/fleet/invitations"); code != http.StatusConflict || !strings.Contains(text, "perflab fleet accounts") {
		t.Errorf("an invitation: %d %s", code, text)
	}
}

// certify makes a certificate for 127.0.0.1 that signs for itself.
func certify(cert, key string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, private.Public(), private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return err
	}
	return os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}
