package api_test

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// event is one of a stream.
type event struct{ name, id, data string }

// reader gives the events of a stream, one after another.
func reader(r io.Reader) func(t *testing.T) event {
	s := bufio.NewScanner(r)
	return func(t *testing.T) event {
		t.Helper()
		var e event
		for s.Scan() {
			name, value, _ := strings.Cut(s.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					return e
				}
			}
		}
		t.Fatal("the stream has ended:", s.Err())
		return e
	}
}
