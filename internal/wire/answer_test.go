package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// kept is a sink that keeps what it is given.
type kept struct {
	status int
	header http.Header
	body   []byte
	heads  int
}

func (k *kept) Head(status int, h http.Header, _ Stamp) {
	k.status, k.header, k.heads = status, h, k.heads+1
}

func (k *kept) Body(p []byte, _ Stamp) bool {
	k.body = append(k.body, p...)
	return true
}

// read feeds an answer cut into pieces of n bytes.
func read(in []byte, n int) (k kept, rest []byte, err error) {
	var a answer
	for from := 0; from < len(in); from += n {
		rest, err = a.feed(in[from:min(from+n, len(in))], Stamp{}, &k)
		if a.state == ended {
			rest = in[min(from+n, len(in))-len(rest):]
		}
		if err != nil || a.state == ended {
			return k, rest, err
		}
	}
	return k, nil, a.eof()
}

// readMessages is read with the whole answer there, cut into its messages.
func readMessages(in []byte) (k kept, rest []byte, err error) {
	var a answer
	for len(in) > 0 {
		n := a.message(in)
		rest, err = a.feed(in[:n], Stamp{}, &k)
		in = in[n:]
		if err != nil || a.state == ended {
			return k, append(rest[:len(rest):len(rest)], in...), err
		}
	}
	return k, nil, a.eof()
}

// TestMessage: a message is a chunk, an event or a head.
func TestMessage(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	const open = "HTTP/1.1 200 OK\r\n\r\n"
	for in, want := range map[string][]string{
		chunked + "2\r\nab\r\n10;x\r\n0123456789abcdef\r\n0\r\n\r\n": {chunked, "2\r\nab\r\n", "10;x\r\n0123456789abcdef\r\n", "0\r\n\r\n"},
		chunked + "2\r\na":                  {chunked, "2\r\na"},
		chunked + "2":                       {chunked, "2"},
		open + "data: a\n\ndata: b\n\ndata": {open, "data: a\n\n", "data: b\n\n", "data"},
		open[:9]:                            {open[:9]},
	} {
		var a answer
		var got []string
		for p := []byte(in); len(p) > 0; {
			n := a.message(p)
			got = append(got, string(p[:n]))
			if _, err := a.feed(p[:n], Stamp{}, new(kept)); err != nil {
				t.Error(err)
			}
			p = p[n:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		in, body, rest, err string
		status              int
	}{
		"length":        {in: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcNEXT", status: 200, body: "abc", rest: "NEXT"},
		"chunked":       {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\nN", status: 200, body: "abc", rest: "N"},
		"trailer":       {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\n", status: 200, body: "a"},
		"close":         {in: "HTTP/1.1 200 OK\r\n\r\nabc", status: 200, body: "abc"},
		"HTTP/1.0":      {in: "HTTP/1.0 404 Not Found\r\n\r\nabc", status: 404, body: "abc"},
		"continue":      {in: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", status: 200, body: "a"},
		"no body":       {in: "HTTP/1.1 204 No Content\r\n\r\nX", status: 204, rest: "X"},
		"nothing":       {err: "EOF"},
		"half a head":   {in: "HTTP/1.1 200 OK\r\nContent-", err: "within the head"},
		"no head":       {in: "hello\r\n\r\n", err: "malformed HTTP"},
		"cut":           {in: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", status: 200, body: "abc", err: "unexpected EOF"},
		"cut chunk":     {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabc", status: 200, body: "abc", err: "unexpected EOF"},
		"no last chunk": {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", status: 200, body: "a", err: "unexpected EOF"},
		"no size":       {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\na", status: 200, err: "chunked coding"},
		"size too big":  {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("f", 17) + "\r\n", status: 200, err: "chunked coding"},
		"data too long": {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", status: 200, body: "a", err: "chunked coding"},
		"endless line":  {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", maxLine+1), status: 200, err: "chunked coding"},
		"endless head":  {in: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHead+1), err: "head of the answer"},
	} {
		for _, cut := range []int{1, 2, 3, 7, 1 << 21} {
			if len(tt.in) > maxLine && cut < 7 {
				continue
			}
			k, rest, err := read([]byte(tt.in), cut)
			if k.status != tt.status || string(k.body) != tt.body || tt.err == "" && string(rest) != tt.rest {
				t.Errorf("%s by %d: status %d, body %q, rest %q", name, cut, k.status, k.body, rest)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s by %d: error %v, want %q", name, cut, err, tt.err)
			}
		}
	}
}

// FuzzAnswer: where the bytes are cut changes nothing, and what net/http reads
// without a fault is read the same.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n"), 3)
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1"), 5)
	f.Add([]byte("HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.0 200 OK\r\n\r\nabc"), 1)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n"), 2)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole, rest, err := read(in, len(in)+1)
		cut = max(1, cut)
		again, rest2, err2 := read(in, cut)
		if whole.status != again.status || !bytes.Equal(whole.body, again.body) || fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && !bytes.Equal(rest, rest2) {
			t.Fatalf("whole: %d %q %q %v\ncut %d: %d %q %q %v", whole.status, whole.body, rest, err, cut, again.status, again.body, rest2, err2)
		}
		again, rest2, err2 = readMessages(in)
		if whole.status != again.status || !bytes.Equal(whole.body, again.body) || fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && !bytes.Equal(rest, rest2) {
			t.Fatalf("whole: %d %q %q %v\nby message: %d %q %q %v", whole.status, whole.body, rest, err, again.status, again.body, rest2, err2)
		}
		if whole.heads > 1 {
			t.Fatalf("%d heads", whole.heads)
		}
		status, body, ok := oracle(in)
		if ok && (err != nil || status != whole.status || !bytes.Equal(body, whole.body)) {
			t.Fatalf("net/http: %d %q\nhere: %d %q %v", status, body, whole.status, whole.body, err)
		}
	})
}

// oracle reads an answer with net/http, informational ones skipped.
func oracle(in []byte) (status int, body []byte, ok bool) {
	r := bufio.NewReader(bytes.NewReader(in))
	for {
		resp, err := http.ReadResponse(r, &request)
		if err != nil {
			return 0, nil, false
		}
		if resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err = io.ReadAll(resp.Body)
		return resp.StatusCode, body, err == nil
	}
}

// TestReadOrder: stamps of an exchange never decrease, and a stamp from a wall
// clock that was set is not believed.
func TestReadOrder(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	wall := func(d time.Duration) int64 { return at(d).UnixNano() }
	ms := time.Millisecond
	x := Exchange{Start: start, Sent: 1 * ms}
	for i, tt := range []struct {
		now  time.Duration
		wall int64
		want time.Duration
	}{
		{10 * ms, wall(7 * ms), 7 * ms},
		{11 * ms, wall(6 * ms), 7 * ms},        // before the one before
		{12 * ms, wall(12*ms + 1000), 12 * ms}, // a little ahead: two clocks
		{13 * ms, wall(time.Hour), 13 * ms},    // set while the bytes waited
		{14 * ms, wall(-time.Hour), 14 * ms},
		{15 * ms, 0, 15 * ms},
	} {
		st := x.read(at(tt.now), tt.wall)
		if d := st.At - tt.want; d < -time.Microsecond || d > time.Microsecond || st.Read != int32(i) {
			t.Errorf("read %d: %v of read %d, want %v", i, st.At, st.Read, tt.want)
		}
	}
	if x.Coarse != 2 || x.Reads != 6 || x.Last != 15*ms {
		t.Errorf("%d coarse of %d, last at %v", x.Coarse, x.Reads, x.Last)
	}
	y := Exchange{Start: start, Sent: 5 * ms}
	if st := y.read(at(6*ms), wall(4*ms)); st.At != 5*ms {
		t.Errorf("an answer at %v to what was sent at %v", st.At, y.Sent)
	}
}
