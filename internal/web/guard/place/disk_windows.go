package place

import (
	"math"
	"syscall"
	"unsafe"
)

var getDiskFreeSpace = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// free is how many bytes this user may still write on the disk of a directory.
func free(dir string) (int64, error) {
	name, err := syscall.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var n uint64
	if ok, _, err := getDiskFreeSpace.Call(uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&n)), 0, 0); ok == 0 {
		return 0, err
	}
	return int64(min(n, math.MaxInt64)), nil
}
