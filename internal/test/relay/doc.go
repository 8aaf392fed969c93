// Package relay makes links slow and breaks them, for tests, on every Linux kernel: it
// takes TCP connections and brings what comes over them to a target, later by an exact
// time, at a limited rate, or not at all.
//
//	link := relay.Link{Delay: 5 * time.Millisecond}
//	r, err := relay.Listen("127.0.0.1:0", server, relay.Options{Up: link, Down: link})
//	client.Dial(r.Addr())
//	r.Cut(time.Second)  // connections are reset, and new ones too
//	r.Stall()           // nothing comes, and nobody is told, until
//	r.Mend()
//
// A machine of package netns that the relay is to stand on gives its listener (Serve) and its Dial.
//
// Invariants: bytes leave the relay in order, and never earlier than Delay after
// the kernel received them, by its own stamp, so that the time in which the relay was not
// awake is part of the delay and not added to it. How late they left is counted (Stats), so that
// its faults are not taken for those of what is tested.
//
// Where a server under test is in the same process and the machine is busy, a
// higher GOMAXPROCS keeps the relay on time: a thread that the kernel holds up
// then holds up nobody else.
//
// What it is not: a network. It has connections on either side of its own, so
// handshakes and acknowledgements are not delayed, a sender may be some MB
// ahead of a receiver, and a byte that is lost is one that comes later, as TCP shows
// it to programs. Only Linux has it: tests that use it are files *_linux_test.go.
package relay
