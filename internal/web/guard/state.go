package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"perflab/internal/durable"
	"perflab/internal/input"
)

func auditDir(state string) string { return filepath.Join(state, "audit") }

// makeState makes the state directory, which nobody else may look into.
func makeState(dir string) error {
	if err := durable.MkdirAll(dir); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the state directory to others: %w", err)
	}
	return nil
}

// keys are derived from the one secret that the state directory keeps.
type keys struct {
	share []byte // signs share links
	id    string // tells this server from others on the same host, whose cookies a browser does not tell apart
}

const keySize = 32

// openKeys reads the secret, or makes it.
func openKeys(state string) (keys, error) {
	path := filepath.Join(state, "key")
	secret, err := input.File(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		secret = make([]byte, keySize)
		_, _ = rand.Read(secret) // it never fails
		err = durable.WriteFile(path, secret, 0o600)
	}
	if err != nil {
		return keys{}, fmt.Errorf("open the server's key: %w", err)
	}
	if len(secret) != keySize {
		return keys{}, fmt.Errorf("%s has %d bytes and not %d: remove it, which ends all share links", path, len(secret), keySize)
	}
	return keys{share: derive(secret, "share links"), id: hex.EncodeToString(derive(secret, "name of cookies")[:4])}, nil
}

func derive(secret []byte, purpose string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("perflab " + purpose))
	return h.Sum(nil)
}
