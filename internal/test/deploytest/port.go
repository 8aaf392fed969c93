package deploytest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// UnusedPorts is the first of n ports in a row on which nothing of this machine listens.
// They lie below those that kernels give to whoever asks for any port: one of these
// would soon be another test's.
func UnusedPorts(t testing.TB, n int) int {
	t.Helper()
	first, err := FindPorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// FindPorts is UnusedPorts outside of a test.
func FindPorts(n int) (int, error) {
	const low, high = 10_000, 20_000
	for range 100 {
		first, free := low+rand.IntN(high-low-n), 0
		for ; free < n; free++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+free))
			if err != nil {
				break
			}
			l.Close()
		}
		if free == n {
			return first, nil
		}
	}
	return 0, fmt.Errorf("of ports %d to %d no %d in a row are free", low, high-1, n)
}
