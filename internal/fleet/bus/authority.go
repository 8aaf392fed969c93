package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"time"

	"perflab/internal/durable"
	"perflab/internal/input"
)

// authority is who signs for a hub. Its certificate's fingerprint is what members trust.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certificateLasts is how long what an authority signs is good, itself included: members pin it, and
// another one would mean that all of them join again.
const certificateLasts = 20 * 365 * 24 * time.Hour

// openAuthority reads the authority of a directory, or makes it. A key without a certificate is what a kill
// leaves of making one; the other way round somebody has taken the key away.
func openAuthority(dir string) (*authority, error) {
	path, keyPath := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	public, err := input.File(path, mostIdentity)
	if notThere(err) {
		return makeAuthority(path, keyPath)
	} else if err != nil {
		return nil, err
	}
	secret, err := input.File(keyPath, mostIdentity)
	if err != nil {
		return nil, fmt.Errorf("the key of the hub's certificate authority: %w", err)
	}
	pair, err := tls.X509KeyPair(public, secret)
	if err != nil {
		return nil, fmt.Errorf("the hub's certificate authority in %s: %w", path, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the hub's certificate authority in %s: its key must be ECDSA", path)
	}
	return &authority{pair.Leaf, key}, nil
}

func makeAuthority(path, keyPath string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template("perflab fleet")
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero, t.KeyUsage = true, true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key}, err
}

func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(certificateLasts), // clocks differ
	}, nil
}

// server is the TLS of the hub: a new certificate, whose key is kept nowhere.
func (a *authority) server() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template("perflab hub")
	if err != nil {
		return nil, err
	}
	t.NotAfter, t.KeyUsage, t.ExtKeyUsage = a.certificate.NotAfter, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.DNSNames = []string{"perflab-hub"} // nobody goes by it: members pin the authority
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}},
	}, nil
}

func (a *authority) fingerprint() string { return fingerprintOf(a.certificate) }

func fingerprintOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// pinned is the TLS of a member: it trusts one authority, whatever name or address the hub is reached by.
// What is wrong is told to failed, since a *PinError does not come through the NATS client whole.
func pinned(addr, fingerprint string, failed func(*PinError)) *tls.Config {
	check := func(state tls.ConnectionState) error {
		e := &PinError{Addr: addr, Want: fingerprint}
		for _, c := range state.PeerCertificates {
			if !c.IsCA {
				continue
			}
			if e.Have = fingerprintOf(c); e.Have == fingerprint && signed(state.PeerCertificates[0], c) {
				return nil
			}
		}
		if e.Have == fingerprint {
			e.Have = "" // it shows the authority's certificate, which is no secret, and is not signed by it
		}
		failed(e)
		return e
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // of the usual check; the one below is stricter
		VerifyConnection:   check,
	}
}

// signed says that a server's certificate is the authority's, and good now.
func signed(leaf, ca *x509.Certificate) bool {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil && !slices.Equal(leaf.Raw, ca.Raw)
}
