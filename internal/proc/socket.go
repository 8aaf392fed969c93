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
	Inode   uint64 // of one that listens; 0: not told
}

// Sockets reads /proc/net/tcp and tcp6, also one after the other: lines as
// "0: 0100007F:1F90 00000000:0000 0A ... INODE" and heads, which are passed over.
func Sockets(tables []byte) iter.Seq[Socket] {
	return func(yield func(Socket) bool) {
		for line := range bytes.Lines(tables) {
			if s, ok := parseSocket(line); ok && !yield(s) {
				return
			}
		}
	}
}

func parseSocket(line []byte) (s Socket, ok bool) {
	const (
		local, state, inode = 1, 3, 9
		listens             = "0A"
	)
	n := 0
	for f := range bytes.FieldsSeq(line) {
		switch n {
		case local:
			_, hex, _ := bytes.Cut(f, []byte(":"))
			port, err := strconv.ParseUint(string(hex), 16, 16)
			if err != nil {
				return Socket{}, false
			}
			s.Port = int(port)
		case state:
			if string(f) != listens { // most are closed connections, by the ten thousand after many short calls
				return s, true
			}
			s.Listens = true
		case inode:
			s.Inode, _ = strconv.ParseUint(string(f), 10, 64) // 0 is not told
			return s, true
		}
		n++
	}
	return s, s.Listens
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
