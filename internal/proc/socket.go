package proc

import (
	"bytes"
	"iter"
	"strconv"
)

// Socket is what the kernel's tables say of a TCP socket.
type Socket struct {
	Port    int // the local one
	Listens bool
	Inode   uint64 // 0: none any more, or not told
}

// Sockets reads /proc/net/tcp and tcp6, also one after the other: lines as
// "0: 0100007F:1F90 00000000:0000 0A ... INODE" and heads, which are passed over.
func Sockets(tables []byte) iter.Seq[Socket] {
	return func(yield func(Socket) bool) {
		for line := range bytes.Lines(tables) {
			var f [10][]byte // bytes.Fields would allocate for each of the ten thousand connections that short calls leave behind
			n := 0
			for text := range bytes.FieldsSeq(line) {
				f[n] = text
				if n++; n == len(f) {
					break
				}
			}
			_, hex, _ := bytes.Cut(f[1], []byte(":"))
			port, err := strconv.ParseUint(string(hex), 16, 16)
			if err != nil || f[3] == nil {
				continue
			}
			s := Socket{Port: int(port), Listens: string(f[3]) == "0A"}
			s.Inode, _ = strconv.ParseUint(string(f[9]), 10, 64) // fails where it is not told
			if !yield(s) {
				return
			}
		}
	}
}

// ParsePortRange reads the file ip_local_port_range: the first and the last port that outgoing connections
// take.
func ParsePortRange(text []byte) (low, high int, ok bool) {
	f := bytes.Fields(text)
	if len(f) != 2 {
		return 0, 0, false
	}
	low, err1 := strconv.Atoi(string(f[0]))
	high, err2 := strconv.Atoi(string(f[1]))
	return low, high, err1 == nil && err2 == nil && low <= high
}
