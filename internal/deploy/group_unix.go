//go:build unix

package deploy

import (
	"io/fs"
	"os"
	"syscall"
)

// ownGroup puts a process at the head of a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup signals a process's group.
func killGroup(pid int, sig syscall.Signal) error { return syscall.Kill(-pid, sig) }

// isOurs reports whether a file is this user's.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
