package guard

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/field"
)

// How long a certificate that is made is good, and how long before its end the next is made.
const (
	madeFor     = 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour
)

// lookAtFiles is how long files of a certificate are not looked at again.
const lookAtFiles = 30 * time.Second

// certificates give the certificate of now: files that are changed are read again, and one that
// was made is made again before it ends.
type certificates struct {
	certificate, key string   // files
	names            []string // of the one that is made; nil: the files are somebody's
	problem          func(error)

	mu     sync.Mutex
	have   *tls.Certificate
	stamp  string // of the files
	looked time.Time
}

// openCertificates reads the files of the options, or makes a certificate.
func (g opening) openCertificates() error {
	if !g.o.tls() {
		return nil
	}
	c := &certificates{certificate: g.o.Certificate, key: g.o.Key, problem: func(err error) {
		g.log.Error("the certificate cannot be renewed, and the one of before goes on", "error", err)
	}}
	if c.certificate == "" {
		c.certificate, c.key = filepath.Join(g.o.State, "tls.pem"), filepath.Join(g.o.State, "tls-key.pem")
		c.names = g.certificateNames()
	}
	if err := c.refresh(time.Now()); err != nil {
		return field.Errorf("certificate", "%v", err)
	}
	g.certs = c
	return nil
}

// certificateNames are the names by which this server can be called.
func (g opening) certificateNames() []string {
	all := []string{"localhost", "127.0.0.1", "::1"}
	listen, _ := splitHost(g.o.Listen)
	for _, h := range append(slices.Clone(g.o.Hosts), listen) {
		if name, _ := splitHost(h); name != "" && name != "0.0.0.0" && name != "::" {
			all = append(all, name)
		}
	}
	if name, err := os.Hostname(); err == nil && validHost(name) {
		all = append(all, strings.ToLower(name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// current is the certificate for a connection now.
func (c *certificates) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookAtFiles {
		if err := c.refresh(now); err != nil {
			c.problem(err)
		}
	}
	return c.have
}

// refresh reads the files if they are others than before, and makes them where that is ours to do.
func (c *certificates) refresh(now time.Time) error {
	c.looked = now
	if stamp := stampOf(c.certificate) + stampOf(c.key); c.have == nil || stamp != c.stamp {
		read, err := tls.LoadX509KeyPair(c.certificate, c.key)
		switch {
		case err == nil:
			c.have, c.stamp = &read, stamp
		case c.names == nil || !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if c.names == nil || c.have != nil && c.fits(now) {
		return nil
	}
	made, err := makeCertificate(c.certificate, c.key, c.names, now)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	c.have, c.stamp = made, stampOf(c.certificate)+stampOf(c.key)
	return nil
}

func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), " ")
}

// fits says that the certificate does not end soon and has all names.
func (c *certificates) fits(now time.Time) bool {
	leaf := c.have.Leaf
	return leaf != nil && now.Before(leaf.NotAfter.Add(-renewBefore)) && !now.Before(leaf.NotBefore) &&
		!slices.ContainsFunc(c.names, func(name string) bool { return leaf.VerifyHostname(name) != nil })
}

// makeCertificate makes a key and a certificate that signs itself, and keeps them in files.
func makeCertificate(certificate, key string, names []string, now time.Time) (*tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "perflab serve"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(madeFor), // clocks differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &private.PublicKey, private)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return keepCertificate(certificate, key, block("CERTIFICATE", der), block("PRIVATE KEY", secret))
}

func block(kind string, b []byte) []byte {
	var out bytes.Buffer
	_ = pem.Encode(&out, &pem.Block{Type: kind, Bytes: b}) // a Buffer never fails
	return out.Bytes()
}

// keepCertificate writes both files. A kill between them leaves a pair that does not fit, which is
// removed here and made anew.
func keepCertificate(certificate, key string, public, secret []byte) (*tls.Certificate, error) {
	if err := os.Remove(certificate); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := durable.WriteFile(key, secret, 0o600); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(certificate, public, 0o600); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(public, secret)
	return &pair, err
}

// Fingerprint is the SHA-256 of the certificate that clients get now, as browsers show it; "" without TLS.
func (g *Guard) Fingerprint() string {
	if g.certs == nil {
		return ""
	}
	var all []string
	for _, b := range sha256.Sum256(g.certs.current().Certificate[0]) {
		all = append(all, fmt.Sprintf("%02X", b))
	}
	return strings.Join(all, ":")
}
