package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates are those of a control plane: one authority, which signs the server's and the
// client's.
type certificates struct {
	authority      []byte          // PEM
	pool           *x509.CertPool  // with the authority
	server, client tls.Certificate // for 127.0.0.1; of the API server at a kubelet
}

// writeCertificates makes the certificates, and the key of service accounts, into a directory:
// ca.crt, server.crt, server.key, client.crt, client.key, sa.key and sa.pub.
func writeCertificates(dir string) (*certificates, error) {
	root := template("kubetest")
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	c := &certificates{authority: block("CERTIFICATE", der), pool: x509.NewCertPool()}
	c.pool.AppendCertsFromPEM(c.authority)
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), c.authority, 0o600); err != nil {
		return nil, err
	}
	server := template("kube-apiserver")
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.IPAddresses, server.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	client := template("kube-apiserver-kubelet-client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if c.server, err = signed(dir, "server", server, root, rootKey); err != nil {
		return nil, err
	}
	if c.client, err = signed(dir, "client", client, root, rootKey); err != nil {
		return nil, err
	}
	return c, writeAccountKey(dir)
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// signed makes a certificate and its key, writes them as NAME.crt and NAME.key, and loads them.
func signed(dir, name string, leaf, root *x509.Certificate, rootKey *ecdsa.PrivateKey) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, rootKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	cert, private := block("CERTIFICATE", der), block("PRIVATE KEY", secret)
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), cert, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), private, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, private)
}

// writeAccountKey makes the key that signs the tokens of service accounts.
func writeAccountKey(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "sa.key"), block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "sa.pub"), block("PUBLIC KEY", public), 0o600)
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
