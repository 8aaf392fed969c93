package selfcheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"perflab/internal/durable"
	"perflab/internal/hardware"
	"perflab/internal/input"
	"perflab/internal/result"
)

// recordFile is where self checks are kept, one for each machine and
// version, in the user's own cache.
func recordFile() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the place of self checks: %w", err)
	}
	return filepath.Join(dir, "perflab", "selfcheck.json"), nil
}

// machineKey tells one machine and version from another; "" when the machine
// has no name. Another CPU in the machine of that name is another machine.
func machineKey(version string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return ""
	}
	return fmt.Sprintf("%s, %s x %d, perflab %s", host, cpuName(), runtime.NumCPU(), version)
}

// cpuName is the processor's model, or its architecture where the system does
// not tell.
func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	name, _ := hardware.ParseHost(string(b))
	return cmp.Or(name, runtime.GOARCH)
}

// Load returns what a self check of this version found on this
// machine; nil when there was none that can be read.
func Load(version string) *result.SelfCheck {
	path, err := recordFile()
	if err != nil {
		return nil
	}
	all, err := readRecords(path)
	if err != nil {
		return nil
	}
	c, ok := all[machineKey(version)]
	if !ok {
		return nil
	}
	return &c
}

// mostRecords is the size of the file of self checks: each has some hundred bytes.
const mostRecords = 1 << 20

func readRecords(path string) (map[string]result.SelfCheck, error) {
	b, err := input.File(path, mostRecords)
	if err != nil {
		return nil, fmt.Errorf("read self checks: %w", err)
	}
	var all map[string]result.SelfCheck
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("read self checks in %s: %w", path, err)
	}
	return all, nil
}

// Store keeps a self check beside those of other machines and
// versions, and returns the file. A file that cannot be read is replaced.
func Store(c result.SelfCheck) (string, error) {
	key := machineKey(c.Version)
	if key == "" {
		return "", errors.New("store the self check: this machine has no host name to keep it under")
	}
	path, err := recordFile()
	if err != nil {
		return "", err
	}
	all, err := readRecords(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || all == nil {
		all = make(map[string]result.SelfCheck)
	}
	all[key] = c
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode the self check: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("store the self check: %w", err)
	}
	if err := durable.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("store the self check: %w", err)
	}
	return path, nil
}
