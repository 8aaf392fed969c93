package proc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseProcess(t *testing.T) {
	const tail = " 1 42 41 0 -1 4194560 1 0 0 0 5 6 7 8 20 0 1 0 987654 0 0"
	for line, want := range map[string]Process{
		"7 (a) b (c) S" + tail: {ID: ID{PID: 7, Start: 987654}, Name: "a) b (c", Parent: 1, Group: 42, Used: 11 * tick, Reaped: 15 * tick},
		"7 (a) Z" + tail:       {ID: ID{PID: 7, Start: 987654}, Name: "a", Parent: 1, Group: 42, Ended: true, Used: 11 * tick, Reaped: 15 * tick},
		"7 () X" + tail:        {ID: ID{PID: 7, Start: 987654}, Parent: 1, Group: 42, Ended: true, Used: 11 * tick, Reaped: 15 * tick},
	} {
		if p, err := ParseProcess([]byte(line)); err != nil || p != want {
			t.Errorf("%q: got %+v %v, want %+v", line, p, err, want)
		}
	}
	bad := []string{
		"", "7 (a", "7 )a( S" + tail, "7 (a) S 1 2", "x (a) S" + tail, "7 (a) S 1 42 41 0 -1 4194560 1 0 0 0 5 6 7 8 20 0 1 0",
		strings.Replace("7 (a) S"+tail, "987654", "x", 1), strings.Replace("7 (a) S"+tail, " 6 ", " 6a ", 1),
	}
	for _, line := range bad {
		if p, err := ParseProcess([]byte(line)); err == nil {
			t.Errorf("%q is taken for %+v", line, p)
		}
	}
}

func FuzzParseProcess(f *testing.F) {
	f.Add("7 (a) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0")
	f.Add("7 )(")
	f.Add("7 (\x00)) ( Z 1 42 42 0 -1 4194560 1 0 0 0 99999999999 9223372036854775807 0 0 20 0 1 0 9223372036854775807")
	f.Fuzz(func(t *testing.T, line string) {
		p, err := ParseProcess([]byte(line))
		if err != nil {
			return
		}
		// What was read stands in the line that the kernel would write of it.
		state := "S"
		if p.Ended {
			state = "Z"
		}
		again := fmt.Sprintf("%d (%s) %s %d %d 0 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d", p.PID, p.Name, state, p.Parent, p.Group, p.Used/tick, p.Reaped/tick, p.Start)
		if q, err := ParseProcess([]byte(again)); err != nil || q != p && p.Used >= 0 && p.Reaped >= 0 && p.Used%tick == 0 && p.Reaped%tick == 0 {
			t.Errorf("%+v, and by %q %+v, %v", p, again, q, err)
		}
	})
}

func table(all ...Process) Table {
	t := Table{}
	for _, p := range all {
		t[p.PID] = p
	}
	return t
}

func at(pid, parent int, start uint64) Process {
	return Process{ID: ID{PID: pid, Start: start}, Parent: parent}
}

func TestTree(t *testing.T) {
	all := table(
		at(1, 0, 1), at(10, 1, 5), at(11, 10, 6), at(12, 11, 6), at(13, 12, 9), at(20, 1, 7),
		at(15, 14, 8),                // its parent is not listed
		at(16, 10, 4),                // older than what has its parent's number now
		at(17, 16, 9),                // of that one
		at(30, 31, 3), at(31, 30, 3), // a ring, which numbers taken over while all were listed could make
	)
	id := func(pid int) ID { return all[pid].ID }
	for _, c := range []struct {
		roots []ID
		want  []int
	}{
		{[]ID{id(10)}, []int{10, 11, 12, 13}},
		{[]ID{id(12), id(20)}, []int{12, 13, 20}},
		{[]ID{id(12), id(10)}, []int{10, 11, 12, 13}},
		{[]ID{id(1)}, []int{1, 10, 11, 12, 13, 20}},
		{[]ID{id(30)}, []int{30, 31}},
		{[]ID{id(13)}, []int{13}},
		{[]ID{{PID: 10, Start: 4}}, nil}, // another of that number
		{[]ID{{PID: 10, Start: 5, Boot: "another"}}, nil},
		{[]ID{{}}, nil},
		{nil, nil},
	} {
		tree := all.Tree(c.roots...)
		if got := slices.Sorted(maps.Keys(tree)); !slices.Equal(got, c.want) {
			t.Errorf("of %v came %v, want %v", c.roots, got, c.want)
		}
		for pid, p := range tree {
			if p != all[pid] {
				t.Errorf("of %v came %+v, want %+v", c.roots, p, all[pid])
			}
		}
	}
	ids := all.Tree(id(12)).IDs()
	slices.SortFunc(ids, func(a, b ID) int { return a.PID - b.PID })
	if !slices.Equal(ids, []ID{id(12), id(13)}) {
		t.Errorf("ids %v", ids)
	}
}

// A tree is as deep as the processes are many.
func TestDeepTree(t *testing.T) {
	all := Table{}
	for pid := range 100_000 {
		all[pid+1] = at(pid+1, pid, 1)
	}
	if n := len(all.Tree(ID{PID: 50_001, Start: 1})); n != 50_000 {
		t.Errorf("%d processes, want 50000", n)
	}
}

func TestCPU(t *testing.T) {
	first, ok := ParseCPU([]byte("cpu  10 1 5 100 20 2 3 7 4 0\ncpu0 5 0 3 50 0 0 0 0 0 0\ncpu1 5 0 2 50 0 0 0 0 0 0\nintr 5\ncpu9 \n"))
	if !ok || first != (CPU{Count: 2, all: 148, idle: 120, stolen: 7}) {
		t.Errorf("%+v, %v", first, ok)
	}
	if old, ok := ParseCPU([]byte("cpu 1 2 3 4")); !ok || old != (CPU{all: 10, idle: 4}) {
		t.Errorf("of an old kernel: %+v, %v", old, ok)
	}
	for _, bad := range []string{"", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu nan 1 1 1 1 1 1 1", "cpu 1 1 1 -1 1 1 1 1", "cpu 0 0 0 0 0 0 0 0 0 0", "\ncpu 1 2 3 4"} {
		if c, ok := ParseCPU([]byte(bad)); ok {
			t.Errorf("%q is taken for %+v", bad, c)
		}
	}
	later := CPU{all: 248, idle: 150, stolen: 17}
	if s, ok := later.Since(first); !ok || s != (Spent{All: time.Second, Idle: 300 * time.Millisecond, Stolen: 100 * time.Millisecond}) {
		t.Errorf("%+v, %v", s, ok)
	}
	// iowait of an idle processor may be taken back.
	if s, ok := (CPU{all: 158, idle: 119, stolen: 7}).Since(first); !ok || s != (Spent{All: 100 * time.Millisecond}) {
		t.Errorf("%+v, %v", s, ok)
	}
	for _, c := range [][2]CPU{{first, first}, {first, later}, {first, {}}, {{}, first}, {{}, {}}} {
		if s, ok := c[0].Since(c[1]); ok || s != (Spent{}) {
			t.Errorf("%+v since %+v is %+v", c[0], c[1], s)
		}
	}
}

func FuzzParseCPU(f *testing.F) {
	f.Add([]byte("cpu  10 1 5 100 20 2 3 7 4 0\ncpu0 5 0 3 50 0 0 0 0 0 0\n"), []byte("cpu 9223372036854775807 9223372036854775807 3 4 5"))
	f.Fuzz(func(t *testing.T, earlier, later []byte) {
		before, _ := ParseCPU(earlier)
		now, _ := ParseCPU(later)
		all := now.all - before.all
		if s, ok := now.Since(before); ok && all < 1<<39 && (s.All <= 0 || s.Idle < 0 || s.Idle > s.All || s.Stolen < 0 || s.Stolen > s.All) {
			t.Errorf("%+v since %+v is %+v", now, before, s)
		}
	})
}

func TestSockets(t *testing.T) {
	const text = `32768	60999
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F91 0100007F:9C40 06 00000000:00000000 03:00000F8A 00000000     0        0 0 3 0000000000000000
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:FFFF 00000000000000000000000000000000:0000 0A 00000000:00000000
   1: 0100007F 0100007F:9C40 0A
   2: 0100007F:10000 0100007F:9C40 0A
   3: 0100007F:1F92
`
	want := []Socket{{8080, true, 4711}, {8081, false, 0}, {65535, true, 0}}
	if got := slices.Collect(Sockets([]byte(text))); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for s := range Sockets([]byte(text)) {
		if s != want[0] {
			t.Errorf("first %v", s)
		}
		break
	}
}

func FuzzSockets(f *testing.F) {
	f.Add([]byte("  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n"))
	f.Add([]byte("0: :ffff : 0A\n"))
	f.Fuzz(func(t *testing.T, tables []byte) {
		n := 0
		for s := range Sockets(tables) {
			if n++; s.Port < 0 || s.Port > 65535 {
				t.Errorf("%+v", s)
			}
		}
		if lines := strings.Count(string(tables), "\n") + 1; n > lines {
			t.Errorf("%d sockets in %d lines", n, lines)
		}
	})
}

// Most sockets after many short calls are closed ones.
func BenchmarkSockets(b *testing.B) {
	text := strings.Repeat("   1: 0100007F:1F91 0100007F:9C40 06 00000000:00000000 03:00000F8A 00000000     0        0 0 3 0000000000000000\n", 10_000)
	b.ReportAllocs()
	for b.Loop() {
		for s := range Sockets([]byte(text)) {
			if s.Listens {
				b.Fatal(s)
			}
		}
	}
}

func TestParsePortRange(t *testing.T) {
	if low, high, ok := ParsePortRange([]byte("32768\t60999\n")); low != 32768 || high != 60999 || !ok {
		t.Errorf("%d to %d, %v", low, high, ok)
	}
	for _, bad := range []string{"", "1", "1 2 3", "a b", "1 b", "9 8"} {
		if _, _, ok := ParsePortRange([]byte(bad)); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}
