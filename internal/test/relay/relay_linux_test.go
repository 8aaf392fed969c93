package relay

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"perflab/internal/test/deploytest"
)

func TestMain(m *testing.M) { os.Exit(deploytest.Main(m)) }

// limit is how long a test waits for what happens soon.
const limit = 20 * time.Second

// listen is a target that hands over its connections.
func listen(t *testing.T) (l net.Listener, next func() *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, func() *net.TCPConn {
		t.Helper()
		l.(*net.TCPListener).SetDeadline(time.Now().Add(limit))
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*net.TCPConn)
	}
}

func start(t *testing.T, target string, o Options) *Relay {
	t.Helper()
	r, err := Listen("127.0.0.1:0", target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func dial(t *testing.T, r *Relay) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(limit))
	return c.(*net.TCPConn)
}

// through is a connection over a relay, with its other end.
func through(t *testing.T, o Options) (r *Relay, client, server *net.TCPConn) {
	t.Helper()
	l, next := listen(t)
	r = start(t, l.Addr().String(), o)
	client = dial(t, r)
	server = next()
	server.SetDeadline(time.Now().Add(limit))
	return r, client, server
}

// trip is how long a byte takes from one end to the other.
func trip(t *testing.T, from, to net.Conn) time.Duration {
	t.Helper()
	begun := time.Now()
	if _, err := from.Write([]byte{'.'}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// TestDelay sends bytes both ways: none comes early, and half of them within some
// milliseconds also on a machine that is busy.
func TestDelay(t *testing.T) {
	const n, margin = 100, 20 * time.Millisecond
	up, down := 3*time.Millisecond, 500*time.Microsecond
	r, client, server := through(t, Options{Up: Link{Delay: up}, Down: Link{Delay: down}})
	var ups, downs []time.Duration
	for range n {
		ups, downs = append(ups, trip(t, client, server)), append(downs, trip(t, server, client))
	}
	for _, way := range []struct {
		name  string
		delay time.Duration
		took  []time.Duration
		count Way
	}{{"up", up, ups, r.Stats().Up}, {"down", down, downs, r.Stats().Down}} {
		slices.Sort(way.took)
		if least := way.took[0]; least < way.delay {
			t.Errorf("%s: a byte came after %s, and the delay is %s", way.name, least, way.delay)
		}
		if median := way.took[n/2]; median > way.delay+margin {
			t.Errorf("%s: half of the bytes came after %s, and the delay is %s", way.name, median, way.delay)
		}
		if way.count.Bytes != n || way.count.Pieces != n {
			t.Errorf("%s: counted %+v, want %d bytes", way.name, way.count, n)
		}
		t.Logf("%s: delay %s, least %s, median %s, P90 %s; relay late by %s, at most %s",
			way.name, way.delay, way.took[0], way.took[n/2], way.took[n*9/10], way.count.LateMean, way.count.LateMax)
	}
}

// TestNone has a relay that does nothing.
func TestNone(t *testing.T) {
	_, client, server := through(t, Options{})
	var took []time.Duration
	for range 100 {
		took = append(took, trip(t, client, server))
	}
	slices.Sort(took)
	if took[50] > 20*time.Millisecond {
		t.Errorf("half of the bytes came after %s, and there is no delay", took[50])
	}
	t.Logf("least %s, median %s", took[0], took[50])
}

// TestMany has the bytes of many connections come in their order, and none early, while the
// delays change.
func TestMany(t *testing.T) {
	const conns, each = 50, 40
	l, next := listen(t)
	link := Link{Delay: 4 * time.Millisecond}
	r := start(t, l.Addr().String(), Options{Up: link, Down: link})
	base := time.Now()
	errs := make(chan error)
	for range conns {
		client, server := dial(t, r), next()
		server.SetDeadline(time.Now().Add(limit))
		go func() {
			for range each {
				at := binary.BigEndian.AppendUint64(nil, uint64(time.Since(base)))
				if _, err := client.Write(at); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
		go func() {
			var last time.Duration
			for range each {
				var at [8]byte
				if _, err := io.ReadFull(server, at[:]); err != nil {
					errs <- err
					return
				}
				sent := time.Duration(binary.BigEndian.Uint64(at[:]))
				if took := time.Since(base) - sent; took < time.Millisecond || sent < last {
					errs <- errors.New("a byte came early or before its time: " + took.String())
					return
				}
				last = sent
			}
			errs <- nil
		}()
	}
	for i := range 2 * conns {
		link := Link{Delay: time.Duration(1+i%4) * time.Millisecond}
		if err := r.Set(link, link); err != nil {
			t.Error(err)
		}
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s := r.Stats(); s.Connections != conns || s.Open != conns || s.Up.Bytes != conns*each*8 {
		t.Errorf("counted %+v", s)
	}
}

// TestWhole sends megabytes both ways at once, over links of every kind, and compares.
func TestWhole(t *testing.T) {
	for name, o := range map[string]Options{
		"plain":   {},
		"delay":   {Up: Link{Delay: time.Millisecond}, Down: Link{Delay: 3 * time.Millisecond}},
		"limited": {Up: Link{Rate: 40e6}, Down: Link{Rate: 20e6, Delay: time.Millisecond}},
		"lossy":   {Up: Link{Loss: 0.02}, Seed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, client, server := through(t, o)
			const size = 4 << 20
			errs := make(chan error)
			for i, ends := range [][2]*net.TCPConn{{client, server}, {server, client}} {
				data := make([]byte, size)
				rand.NewChaCha8([32]byte{byte(i)}).Read(data)
				go func() {
					_, err := ends[0].Write(data)
					errs <- errors.Join(err, ends[0].CloseWrite())
				}()
				go func() {
					h := sha256.New()
					n, err := io.Copy(h, ends[1])
					if want := sha256.Sum256(data); err == nil && !bytes.Equal(h.Sum(nil), want[:]) {
						err = errors.New("other bytes came than were sent")
					}
					if err == nil && n != size {
						err = io.ErrShortWrite
					}
					errs <- err
				}()
			}
			for range 4 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestRate sends more than the link takes: it takes its time.
func TestRate(t *testing.T) {
	const rate, size = 2_000_000, 600_000
	r, client, server := through(t, Options{Up: Link{Rate: rate}})
	begun := time.Now()
	go client.Write(make([]byte, size))
	if _, err := io.CopyN(io.Discard, server, size); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	if least := time.Duration(size) * time.Second / rate; took < least {
		t.Errorf("%d bytes at %d/s came in %s, want at least %s", size, rate, took, least)
	}
	t.Logf("%d bytes at %d/s in %s: %+v", size, rate, took, r.Stats().Up)
}

// TestLoss loses every other read: what is lost comes later, and all comes.
func TestLoss(t *testing.T) {
	r, client, server := through(t, Options{Up: Link{Loss: 0.5}, Seed: 1})
	lost := 0
	for range 8 {
		if trip(t, client, server) >= Again {
			lost++
		}
	}
	if s := r.Stats(); s.Up.Lost == 0 || s.Up.Lost == 8 || lost < s.Up.Lost || s.Down.Lost != 0 {
		t.Errorf("%d bytes came late, and it counted %+v", lost, s)
	}
}

// TestStall holds bytes and new connections back until the link is mended.
func TestStall(t *testing.T) {
	l, next := listen(t)
	link := Link{Delay: time.Millisecond}
	r := start(t, l.Addr().String(), Options{Up: link, Down: link})
	client := dial(t, r)
	server := next()
	trip(t, client, server)
	r.Stall()
	late := dial(t, r)
	for _, c := range []*net.TCPConn{client, late} {
		if _, err := c.Write([]byte("held")); err != nil {
			t.Fatal(err)
		}
	}
	server.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := server.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("over a link that is stalled came %d bytes, %v", n, err)
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Error("a connection came over a link that is stalled")
	}
	r.Mend()
	for _, c := range []*net.TCPConn{server, next()} {
		c.SetDeadline(time.Now().Add(limit))
		got := make([]byte, 4)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "held" {
			t.Errorf("after the link was mended came %q, %v", got, err)
		}
	}
	if s := r.Stats(); s.Reset != 0 || s.Open != 2 || s.Up.LateMax > limit {
		t.Errorf("counted %+v", s)
	}
}

// isReset says whether a connection was reset, and did not end well.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// refused connects to a relay that is cut, and says how that ends: at once, or at the first read.
func refused(r *Relay) error {
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(limit))
	_, err = c.Read(make([]byte, 1))
	return err
}

// again connects until that succeeds: one that comes before the end of a cut is reset as well.
func again(t *testing.T, r *Relay, l *net.TCPListener) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < limit; {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			continue
		}
		defer c.Close()
		l.SetDeadline(time.Now().Add(100 * time.Millisecond))
		s, err := l.Accept()
		if err != nil {
			continue
		}
		defer s.Close()
		trip(t, c, s)
		return
	}
	t.Fatal("no connection after the cut")
}

// TestCut resets connections, those that are and those that come, until the link is mended or
// the time is over.
func TestCut(t *testing.T) {
	l, next := listen(t)
	r := start(t, l.Addr().String(), Options{})
	for _, how := range []struct {
		d    time.Duration
		mend bool
	}{{0, true}, {time.Hour, true}, {time.Millisecond, false}} {
		client := dial(t, r)
		server := next()
		trip(t, client, server)
		r.Cut(how.d)
		for _, c := range []*net.TCPConn{client, server} {
			c.SetDeadline(time.Now().Add(limit))
			if _, err := c.Read(make([]byte, 1)); !isReset(err) {
				t.Errorf("cut for %s: reading gives %v, want that the connection is reset", how.d, err)
			}
		}
		if how.mend {
			if err := refused(r); !isReset(err) {
				t.Errorf("cut for %s: a new connection ends with %v, want that it is reset", how.d, err)
			}
			r.Mend()
		}
		again(t, r, l.(*net.TCPListener))
	}
	if s := r.Stats(); s.Reset < 3 {
		t.Errorf("counted %+v", s)
	}
}

// TestEnds brings the end of what one side sends to the other, behind what it sent, and a reset as a reset.
func TestEnds(t *testing.T) {
	link := Link{Delay: 2 * time.Millisecond}
	r, client, server := through(t, Options{Up: link, Down: link})
	client.Write([]byte("question"))
	client.CloseWrite()
	if b, err := io.ReadAll(server); err != nil || string(b) != "question" {
		t.Errorf("came %q, %v", b, err)
	}
	server.Write([]byte("answer"))
	server.Close()
	if b, err := io.ReadAll(client); err != nil || string(b) != "answer" {
		t.Errorf("came back %q, %v", b, err)
	}
	if s := r.Stats(); s.Open != 0 || s.Reset != 0 {
		t.Errorf("counted %+v", s)
	}
	_, client, server = through(t, Options{Up: link})
	trip(t, client, server)
	client.SetLinger(0)
	client.Close()
	if _, err := server.Read(make([]byte, 1)); !isReset(err) {
		t.Errorf("a client reset its connection, and the server sees %v", err)
	}
}

// TestUnread has a receiver that takes nothing: another connection is not held up, and the sender is
// told to wait.
func TestUnread(t *testing.T) {
	l, next := listen(t)
	r := start(t, l.Addr().String(), Options{Up: Link{Delay: time.Millisecond}})
	full := dial(t, r)
	next()
	full.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	sent, err := full.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a receiver takes nothing, and the sender sent %d bytes, %v", sent, err)
	}
	other := dial(t, r)
	trip(t, other, next())
}

// TestNobody has a target that is not there.
func TestNobody(t *testing.T) {
	l, _ := listen(t)
	l.Close()
	r := start(t, l.Addr().String(), Options{})
	if err := refused(r); !isReset(err) {
		t.Errorf("the target is not there, and the client sees %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, l := range []Link{{Delay: -1}, {Rate: -1}, {Loss: -0.1}, {Loss: 1}} {
		if r, err := Listen("127.0.0.1:0", "127.0.0.1:1", Options{Down: l}); err == nil {
			r.Close()
			t.Errorf("a link %+v is taken", l)
		}
	}
}
