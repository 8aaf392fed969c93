package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestService: systemd, where there is one, takes the unit, which ends no launch with the server.
func TestService(t *testing.T) {
	unit, err := os.ReadFile("../../docs/serve/perflab.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"KillMode=process", "ProtectSystem=strict", "NoNewPrivileges=yes", "User=perflab"} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("the unit has no %s", line)
		}
	}
	if strings.Contains(string(unit), "PrivateTmp") {
		t.Error("launches that go on lose their temporary files when the server stops")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze to read the unit by")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "perflab.service")
	if err := os.WriteFile(path, bytes.ReplaceAll(unit, []byte("/usr/bin/perflab"), []byte(self)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil {
		t.Errorf("systemd does not take it: %v\n%s", err, out)
	}
}
