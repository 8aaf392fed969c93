package result

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"testing"
)

// FuzzReadCalls: a file of calls is read up to its first fault, and what was read is
// written and read again the same.
func FuzzReadCalls(f *testing.F) {
	c := stream(3, 100*msec, 50*msec, 60*msec, 60*msec)
	line := append(c.AppendJSON(nil), '\n')
	f.Add(bytes.Repeat(line, 3))
	f.Add(append(bytes.Clone(line), line[:len(line)/2]...))
	f.Add([]byte("\n\n{}\n{\"i\":-1}\nnull\n[1]\n"))
	f.Add([]byte(`{"i":0,"chunk_ns":[1,2],"chunk_tokens":[1,1],"end_ns":-5}` + "\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines []byte
		n := 0
		for c, err := range ReadCalls(bytes.NewReader(data)) {
			if err != nil {
				break
			}
			lines, n = append(c.AppendJSON(lines), '\n'), n+1
		}
		var again []byte
		for c, err := range ReadCalls(bytes.NewReader(lines)) {
			if err != nil {
				t.Fatalf("%v in\n%s", err, lines)
			}
			again, n = append(c.AppendJSON(again), '\n'), n-1
		}
		if n != 0 || !bytes.Equal(lines, again) {
			t.Fatalf("%d calls are lost; written as\n%s, then as\n%s", n, lines, again)
		}
	})
}

// FuzzSummaryJSON: what is read of a summary can be shown and written, and reads the same.
func FuzzSummaryJSON(f *testing.F) {
	f.Add([]byte(`{"completed":3,"p99_ttft_ms":1.5,"mean_itl_ms":null,"failures_by_class":{"http":1},"verdict":{"status":"noted","checks":[{"name":"a","status":"noted","text":"b"}]},"definitions":{"ttft":"first-message"},"partial":true}`))
	f.Add([]byte(`{"p1e2_ttft_ms":1,"p_ttft_ms":2,"p99.99999_itl_ms":-0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Summary
		if json.Unmarshal(data, &s) != nil {
			return
		}
		for name, v := range s.Figures {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s is %v", name, v)
			}
		}
		_ = s.Verdict.Text()
		once, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var again Summary
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v; written as\n%s, then as\n%s", err, once, twice)
		}
	})
}

// FuzzParseGoodput: bounds in any form are read or refused.
func FuzzParseGoodput(f *testing.F) {
	for _, s := range []string{"ttft:500", "ttft:500 tpot:50", "p99_ttft_ms <= 500, mean_itl_ms < 5%", "e2el:1e400", ":", "ttft:5s,itl:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) ([]SLO, error){ParseGoodput, ParseSLOs} {
			slos, err := parse(s)
			for _, slo := range slos {
				if err == nil && (math.IsNaN(slo.Limit) || math.IsInf(slo.Limit, 0)) {
					t.Errorf("%q has the limit %v", s, slo.Limit)
				}
			}
		}
	})
}

// FuzzLoad: a digest with a place changed, its checksum made right again, is refused or
// taken, and what was taken gives figures. Whole digests have two megabytes, most of them
// zeros, in which a fuzzer finds nothing.
func FuzzLoad(f *testing.F) {
	h, o := Header{Requests: 40, Limit: 8}, Options{}
	calls := randomCalls(7, 40)
	var digests [][]byte
	for _, rows := range []int{1e6, 5} {
		acc, err := NewLimited(h, o, Limits{Bytes: 10_000, Some: 5_000, Rows: rows})
		if err != nil {
			f.Fatal(err)
		}
		for i := range calls {
			acc.Add(&calls[i])
		}
		var b bytes.Buffer
		if err := acc.Save(&b, "these"); err != nil {
			f.Fatal(err)
		}
		digests = append(digests, b.Bytes())
	}
	f.Add(false, uint32(0), []byte{}, uint32(0))
	f.Add(true, uint32(900), []byte{1, 2}, uint32(0))
	f.Add(true, uint32(2000), []byte{0xff}, uint32(9))
	f.Fuzz(func(t *testing.T, thinned bool, at uint32, patch []byte, drop uint32) {
		data := digests[0]
		if thinned {
			data = digests[1]
		}
		from := int(at) % len(data)
		to := min(from+len(patch), len(data)-4)
		body := slices.Concat(data[:from], patch, data[max(to, from):max(to, from, len(data)-4)])
		body = body[:len(body)-min(int(drop), len(body))]
		whole := binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		acc, err := Load(bytes.NewReader(whole), h, o, "these")
		if err != nil {
			return
		}
		if _, err := acc.Analyze(nil, o); err != nil {
			return
		}
		if err := acc.Save(io.Discard, "these"); err != nil {
			t.Fatal(err)
		}
	})
}
