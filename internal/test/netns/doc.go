// Package netns makes machines for tests: network namespaces of Linux, each
// with an address, a host name and a link of its own, joined by a bridge in one
// more namespace, so that nothing of the host is touched.
//
//	m := netns.New(t, 2, netns.Options{})
//	l, err := m[0].Listen("tcp", m[0].At(8000))             // in this process, on the first machine
//	out, err := m[1].Command(ctx, "curl", "http://"+m[0].At(8000)).Output()
//	m[1].Cut()                                              // what it sends is lost, silently
//	m[1].Mend()
//
// It needs root, ip and tc (iproute2), nsenter and unshare (util-linux), and a
// kernel with namespaces, veth and bridges. New skips the test where one of
// them is absent, and says which. What only some kernels have, limits of rate and delays
// of links and clocks apart, is asked for by methods of a Machine: their error is
// ErrMissing where there is none of it, and Need skips by it. Links that delay
// on every kernel are those of package relay.
//
// Invariants: the namespaces have no name and are held by files of the test's
// process alone, so that the kernel removes them when it ends, in whatever way;
// before that every process on the machines is killed, also those that a
// process there started, by a guard that outlives the test. A command's
// process is the program itself: its id, its signals, its exit status.
//
// Deliberately absent: the wall clock of a machine, which no kernel sets apart
// (Clock moves the monotonic clock and the time since boot, in whole seconds,
// since unshare takes no less, and no clock runs faster than another); files,
// users and process ids of its own, /sys included; links to the world outside. Only Linux
// has it: tests that use it are files *_linux_test.go.
package netns
