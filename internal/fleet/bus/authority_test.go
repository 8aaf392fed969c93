package bus

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type tlsConfig = tls.Config

// handshake has a client and a server meet, and says what the client thinks of it.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() { done <- tls.Server(a, server).HandshakeContext(within(t)); a.Close() }() // read below
	err := tls.Client(b, client).HandshakeContext(within(t))
	b.Close()
	<-done
	return err
}

func TestAuthorityStays(t *testing.T) {
	dir := t.TempDir()
	first := must[*authority](t)(openAuthority(dir))
	if again := must[*authority](t)(openAuthority(dir)); again.fingerprint() != first.fingerprint() {
		t.Error("the authority is another one when it is opened again")
	}
	if err := os.Remove(filepath.Join(dir, "ca.pem")); err != nil { // a kill between the two files
		t.Fatal(err)
	}
	second := must[*authority](t)(openAuthority(dir))
	if second.fingerprint() == first.fingerprint() {
		t.Error("a new authority has the old fingerprint")
	}
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := openAuthority(dir); err == nil {
		t.Error("an authority without its key is replaced, and all members would be lost")
	}
}

func FuzzJoinURL(f *testing.F) {
	token, fingerprint := strings.Repeat("A", 43), strings.Repeat("0", 64)
	f.Add(joinURL("127.0.0.1:7422", token, fingerprint))
	f.Add(joinURL("[::1]:7422", token, fingerprint))
	f.Add("perflab://host/#x.y")
	f.Add("https://host:1/#" + token + "." + fingerprint)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseJoin(text)
		if err != nil {
			if len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("the error shows the URL: %v", err)
			}
			return
		}
		if _, _, err := net.SplitHostPort(p.addr); err != nil {
			t.Errorf("%q has the address %q", text, p.addr)
		}
		again, err := parseJoin(joinURL(p.addr, p.token, p.fingerprint))
		if err != nil || again != p {
			t.Errorf("%q is %+v, and written again %+v, %v", text, p, again, err)
		}
	})
}

func FuzzConnectionName(f *testing.F) {
	f.Add(connectionName(speaks("v0.3.0"), "abc"))
	f.Add("perflab 1 ")
	f.Add("perflab x v1 y")
	f.Fuzz(func(t *testing.T, name string) {
		s, instance, ok := parseConnectionName(name)
		if !ok {
			return
		}
		again, also, ok := parseConnectionName(connectionName(s, instance))
		if !ok || again != s || also != instance {
			t.Errorf("%q is %+v %q, and written again %+v %q", name, s, instance, again, also)
		}
	})
}

func TestOutsideNeedsTLS(t *testing.T) {
	u := must[User](t)(NewUser("a", Agent))
	seed := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(seed, []byte(u.Seed), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, ok := range map[string]bool{
		"tls://nats.example.com:4222": true, "tls://nats.example.com": true, "nats://127.0.0.1:4222": true, "nats://localhost": true,
		"nats://nats.example.com:4222": false, "nats.example.com": false, "https://nats.example.com": false, "tls://me:secret@nats.example.com": false, "": false,
	} {
		id, err := Outside(url, seed, "", Agent)
		if (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows a password: %v", err)
		}
		if ok && (id.ID != u.ID || id.Role != Agent || !strings.Contains(id.Addr, ":")) {
			t.Errorf("%s: %v", url, id)
		}
	}
	if err := os.WriteFile(seed, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Outside("tls://nats.example.com", seed, "", Agent); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file without a seed: %v", err)
	}
}
