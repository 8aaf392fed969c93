//go:build linux || darwin || freebsd

package place

import (
	"math"
	"syscall"
)

// free is how many bytes this user may still write on the disk of a directory.
func free(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	blocks, each := int64(s.Bavail), int64(s.Bsize) // their types differ between systems; Bavail can be below zero
	if blocks < 0 || each <= 0 {
		return 0, nil
	}
	if blocks > math.MaxInt64/each {
		return math.MaxInt64, nil
	}
	return blocks * each, nil
}
