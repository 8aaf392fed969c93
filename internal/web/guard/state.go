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
	"runtime"

	"perflab/internal/durable"
	"perflab/internal/field"
	"perflab/internal/input"
)

func auditDir(state string) string { return filepath.Join(state, "audit") }

// lockTries is how often a state directory is asked for that another server opens at this moment,
// which takes it some milliseconds. A try takes some fifty.
const lockTries = 100

// lockState makes the state directory, which nobody else may look into, and keeps others from opening
// it until the file that it returns is closed: two servers that start together have one key.
func lockState(dir string) (*os.File, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := durable.MkdirAll(dir); err != nil {
			return nil, field.Errorf("state", "cannot be made: %v. The server keeps its keys and its audit log there: give a directory that can be written to", err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("close the state directory to others: %w", err)
		}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, field.Errorf("state", "%s is no directory", dir)
	case info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows":
		return nil, field.Errorf("state", "others may write into %s, who could let themselves in: chmod go-w %s", dir, dir)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, field.Errorf("state", "cannot be written to: %v. The server keeps its keys and its audit log there: give a directory that can be", err)
	}
	for range lockTries {
		if ok, err := durable.Hold(lock); ok || err != nil { // a file system without locks leaves it to the user
			return lock, nil
		}
	}
	return nil, errors.Join(field.Errorf("state", "another server is opening %s and does not come to an end: stop it", dir), lock.Close())
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
