package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Files of a cgroup.
const (
	cgroupKill     = "cgroup.kill" // since Linux 5.14: ends all that is in it and below, also what is just forking
	cgroupProcs    = "cgroup.procs"
	cgroupSharedBy = "cgroup.subtree_control"
)

// newCgroup makes a cgroup below that of this process, and opens its directory.
func newCgroup(name string) (*os.File, error) {
	if name == "" {
		return nil, errors.New("no cgroup is wanted")
	}
	parent, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	// Where controllers share something out among cgroups, the engine would get another
	// share of it than it gets without one, and figures would be of that.
	shared, err := os.ReadFile(filepath.Join(parent, cgroupSharedBy))
	if controllers := strings.TrimSpace(string(shared)); err == nil && controllers != "" {
		err = fmt.Errorf("%s shares out %s among its cgroups", parent, controllers)
	}
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, cgroupKill))
	}
	if err != nil {
		f.Close() // a nil *os.File refuses, which is well
		removeCgroup(dir)
		return nil, err
	}
	return f, nil
}

// ownCgroup is the directory of the cgroup, of version 2, that this process is in.
func ownCgroup() (string, error) {
	member, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return cgroupDir(string(member), string(mounts))
}

// cgroupDir finds the directory of a process's cgroup in its /proc files cgroup, whose line of
// version 2 is "0::PATH", and mountinfo: "ID PARENT DEVICE ROOT MOUNTPOINT ... - TYPE ...".
func cgroupDir(member, mounts string) (string, error) {
	for line := range strings.Lines(member) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok || strings.HasPrefix(path, "/..") { // outside of what this process may see
			continue
		}
		for mount := range strings.Lines(mounts) {
			f := strings.Fields(mount)
			dash := slices.Index(f, "-")
			if dash < 5 || dash+1 >= len(f) || f[dash+1] != "cgroup2" {
				continue
			}
			if rest, err := filepath.Rel(f[3], path); err == nil && filepath.IsLocal(rest) {
				return filepath.Join(f[4], rest), nil
			}
		}
	}
	return "", errors.New("no cgroup of version 2 is mounted")
}

// cgroupMembers are the processes in a cgroup and below it.
func cgroupMembers(dir string) (pids []int) {
	if dir == "" {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != cgroupProcs {
			return nil // what cannot be read is looked for by other ways
		}
		b, _ := os.ReadFile(path) // as above
		for line := range strings.Lines(string(b)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// killCgroup ends all that is in a cgroup.
func killCgroup(dir string) {
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, cgroupKill), []byte("1"), 0) // what stays is ended one by one
	}
}

// remove removes the cgroup.
func (s scope) remove() { removeCgroup(s.cgroup) }

// removeCgroup removes a cgroup in which nothing runs, with those that the engine made
// in it.
func removeCgroup(dir string) {
	if dir == "" {
		return
	}
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, d := range slices.Backward(dirs) {
		_ = os.Remove(d) // one that is not empty stays, and costs nothing
	}
}
