package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"reflect"
)

// Fingerprint is equal for two workloads exactly when they send the same
// requests at the same times: prompts and all that stands in their place or
// beside them, and output lengths. It builds every prompt once (about 10 ns a
// token); of an endless workload the first thousand, and of one of more than ten
// million requests these and their number. Of a session of agents it takes the first prompt and
// what the others are made of. Answers that a server has
// yet to generate are no part of it.
func (w *Workload) Fingerprint() string {
	h := sha256.New()
	var b [33]byte
	for r := range fingerprinted(w) {
		if w.Trees() {
			h.Write(trees{w}.hashInput(r.Session - 1))
		}
		binary.LittleEndian.PutUint64(b[0:], uint64(r.Index))
		binary.LittleEndian.PutUint64(b[8:], uint64(r.Due))
		binary.LittleEndian.PutUint64(b[16:], uint64(r.Output))
		binary.LittleEndian.PutUint64(b[24:], uint64(len(r.Prompt)))
		b[32] = 0
		if r.EOS {
			b[32] = 1
		}
		rest := r.rest()
		if rest != nil {
			b[32] |= 2
		}
		h.Write(b[:]) // never fails
		io.WriteString(h, r.Prompt)
		if rest != nil {
			binary.LittleEndian.PutUint64(b[0:], uint64(len(rest)))
			h.Write(b[:8])
			h.Write(rest)
		}
	}
	if w.long != nil {
		fmt.Fprintf(h, "%d requests in %v", w.long.n, w.long.span)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// rest encodes what Fingerprint does not write field by field; nil where the
// request has nothing of it.
func (r Request) rest() []byte {
	r.Index, r.Due, r.Prompt, r.Input, r.Output, r.EOS = 0, 0, "", 0, 0, false
	r.Turns = 0 // the requests themselves tell
	if reflect.ValueOf(r).IsZero() {
		return nil
	}
	fields := r.Fields
	r.Fields = nil
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("workload: encode a request: %v", err)) // strings and numbers only
	}
	return append(b, fields...) // as they are: they may not be JSON yet
}

// fingerprinted are the requests that a fingerprint covers: all, later turns
// among them, or the first thousand of an endless or a very long workload.
func fingerprinted(w *Workload) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		n := 0
		for r := range w.All() {
			if n++; (w.supply != nil || w.long != nil) && n > 1000 {
				return
			}
			for more := true; more; {
				if !yield(r) {
					return
				}
				if w.Trees() {
					break // the session is hashed as a whole
				}
				var next Request
				if next, next.Due, more = w.Next(r, ""); more {
					r = next // the think time stands in for its due time
				}
			}
		}
	}
}
