package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sleeper starts a process that no deployment started.
func sleeper(t *testing.T, env ...string) identity {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	id, ok := identify(cmd.Process.Pid)
	if !ok {
		t.Fatal("process is not found")
	}
	return id
}

func TestSweepEndsOnlyWhatIsRecorded(t *testing.T) {
	marker := markerKey + "=of-this-test"
	recordedOne := sleeper(t)
	strayOne := sleeper(t, marker)
	// The same id as in the record, of a process that started later.
	reused := sleeper(t)
	earlier := identity{PID: reused.PID, Start: reused.Start - 1, Boot: reused.Boot}
	other := sleeper(t, marker+"-not")
	dir := filepath.Join(t.TempDir(), "trial-1", "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := record{Kind: "process", Owner: owner{identity: earlier}, Processes: []Record{
		{identity: recordedOne, Marker: marker, Argv: []string{"engine", "serve"}},
		{identity: earlier, Argv: []string{"engine", "serve"}},
		{identity: identity{PID: 1 << 30}},
	}}
	if err := r.write(filepath.Join(dir, recordName)); err != nil {
		t.Fatal(err)
	}
	ended, err := (Process{}).Sweep(t.Context(), filepath.Dir(filepath.Dir(dir)))
	if err != nil || len(ended) != 2 {
		t.Errorf("sweep ends %q, %v; want two", ended, err)
	}
	for id, want := range map[identity]bool{recordedOne: false, strayOne: false, reused: true, other: true} {
		if now, ok := identify(id.PID); (ok && now == id) != want {
			t.Errorf("process %d runs: %v, want %v", id.PID, ok, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, recordName)); !os.IsNotExist(err) {
		t.Errorf("record stays: %v", err)
	}
}

// A directory that was copied from another machine, or is opened after a boot, leads to
// processes that have nothing to do with it, although their numbers and start times match.
func TestSweepOfAnotherMachine(t *testing.T) {
	bystander := sleeper(t)
	us := currentOwner()
	elsewhere := identity{PID: bystander.PID, Start: bystander.Start, Boot: "another"}
	for _, c := range []struct {
		kind  string
		owner owner
		err   string
	}{
		{"process", owner{identity{PID: us.PID, Start: us.Start, Boot: "another"}, us.Machine}, ""},        // booted again
		{"process", owner{identity{PID: us.PID, Start: us.Start, Boot: "another"}, "another-machine"}, ""}, // copied
		{"docker", owner{identity{PID: us.PID, Start: us.Start, Boot: "another"}, "another-machine"}, "is of a perflab on another-machine"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, recordName)
		if err := (record{Kind: c.kind, Owner: c.owner, Processes: []Record{{identity: elsewhere, Argv: []string{"engine"}}}}).write(path); err != nil {
			t.Fatal(err)
		}
		ended, err := (Launcher{Host: local{}, Kind: c.kind}).Sweep(t.Context(), dir)
		if len(ended) > 0 || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s of %+v: sweep ends %q, %v", c.kind, c.owner, ended, err)
		}
		if _, err := os.Stat(path); (err == nil) != (c.err != "") {
			t.Errorf("%s of %+v: record %v", c.kind, c.owner, err)
		}
	}
	if now, ok := identify(bystander.PID); !ok || now != bystander {
		t.Error("a process of this machine was ended for one of another's")
	}
}

func TestSweepBadRecords(t *testing.T) {
	if ended, err := (Process{}).Sweep(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil || ended != nil {
		t.Errorf("sweep of nothing: %v, %v", ended, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, recordName), []byte(`{"marker`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (Process{}).Sweep(t.Context(), dir); err == nil || !strings.Contains(err.Error(), recordName) {
		t.Errorf("sweep of a broken record: %v", err)
	}
	// A record without a marker must not match processes without an environment.
	if got := (Record{}).remaining(); len(got) != 0 {
		t.Errorf("an empty record leads to %v", got)
	}
}

func TestSignalExactly(t *testing.T) {
	id := sleeper(t)
	if err := signalExactly(identity{PID: id.PID, Start: id.Start + 1, Boot: id.Boot}, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if _, ok := identify(id.PID); !ok {
		t.Error("a process of another start time was ended")
	}
	if err := signalExactly(identity{PID: 1 << 30}, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestCgroupDir(t *testing.T) {
	const (
		v1      = "30 29 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		unified = "40 29 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
		inside  = "40 29 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"
	)
	for _, c := range []struct{ member, mounts, want string }{
		{"0::/user.slice/a b.scope\n", v1 + unified, "/sys/fs/cgroup/user.slice/a b.scope"},
		{"9:cpu:/x\n0::/\n", v1 + "41 29 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified"},
		{"0::/docker/abc/d\n", inside, "/sys/fs/cgroup/d"},
		{"0::/other\n", inside, ""},
		{"0::/../other\n", unified, ""},
		{"9:cpu:/x\n", unified, ""},
		{"0::/x\n", v1, ""},
		{"", "- cgroup2\n", ""},
	} {
		if got, err := cgroupDir(c.member, c.mounts); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q in %q is %q, %v; want %q", c.member, c.mounts, got, err, c.want)
		}
	}
}

// The cgroup of a record counts where its name is the one that perflab gave it.
func TestRecordOfAStrangersCgroup(t *testing.T) {
	r := Record{Marker: markerKey + "=ABC/0", Cgroup: "/sys/fs/cgroup/system.slice"}
	if got := r.scope().cgroup; got != "" {
		t.Errorf("%s would be ended", got)
	}
	r.Cgroup = "/sys/fs/cgroup/x/perflab-ABC-0"
	if got := r.scope().cgroup; got != r.Cgroup {
		t.Errorf("cgroup %q, want %q", got, r.Cgroup)
	}
}
