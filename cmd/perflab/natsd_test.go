package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// natsd PORT CONF prepares an outside NATS server: the program of the module that perflab embeds a hub of, as
// bin/nats-server, a certificate for this machine in cert.pem, and in CONF a configuration that includes the accounts.
func natsd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: natsd PORT CONF")
	}
	program := ts.MkAbs("bin/nats-server")
	if text, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		ts.Fatalf("build a NATS server: %v\n%s", err, text)
	}
	ts.Check(certify(ts.MkAbs("cert.pem"), ts.MkAbs("key.pem")))
	conf := fmt.Sprintf(`listen: "127.0.0.1:%s"
pid_file: %q
tls { cert_file: %q, key_file: %q }
jetstream { store_dir: %q, sync_interval: always }
include keys/accounts.conf
`, args[0], ts.MkAbs("nats.pid"), ts.MkAbs("cert.pem"), ts.MkAbs("key.pem"), ts.MkAbs("nats"))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(conf), 0o600))
	ts.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+ts.Getenv("PATH"))
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
