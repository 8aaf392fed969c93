package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// floods never stops saying a thing.
func floods(text string) script {
	text = strings.Repeat(chunked(text), 2000)
	return func(c net.Conn) bool {
		_, err := io.WriteString(c, okHead)
		for err == nil {
			_, err = io.WriteString(c, text)
		}
		return false
	}
}

// TestEndlessStream: limits on time and an interrupt end a call whose server
// never stops sending.
func TestEndlessStream(t *testing.T) {
	long := strings.Repeat("a", 2000) // so that no fast reader comes to the most events of a stream before its time is over
	enough := errors.New("interrupted")
	for name, tt := range map[string]struct {
		say    string
		cancel time.Duration
		class  result.Class
	}{
		"pings":       {say: ": ping\n\n", class: result.TimeoutFirstToken},
		"tokens":      {say: word(long), class: result.TimeoutTotal},
		"interrupted": {say: word(long), cancel: 100 * ms, class: result.Cancelled},
	} {
		for _, standard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, standard %v", name, standard), func(t *testing.T) {
				c, err := New(Config{
					BaseURL: startRaw(t, floods(tt.say)).url, Backend: BackendChat, Standard: standard,
					FirstTokenTimeout: 200 * ms, IdleTimeout: time.Second, TotalTimeout: 400 * ms,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, func() { cancel(enough) })
				}
				start := time.Now()
				got := c.Send(ctx, start, workload.Request{Prompt: "p"})
				if took := time.Since(start); got.Class != tt.class || took > 10*time.Second {
					t.Errorf("class %q after %v: %s", got.Class, took, got.Error)
				}
			})
		}
	}
}

// TestMaxMessages: a stream has a bound even where no limit on time ends it.
func TestMaxMessages(t *testing.T) {
	empty := strings.Replace(word("a"), `"a"`, `""`, 1)
	for name, say := range map[string]string{"tokens": word("a"), "empty": empty, "both": word("a") + empty} {
		call := new(result.Call)
		s := newStream(call, chat(), false)
		p, n := []byte(strings.Repeat(say, 1000)), 0
		for n = 0; n <= maxMessages/1000 && s.feed(p, 1, 0); n++ {
		}
		if call.Class != result.BadBody || !strings.Contains(call.Error, "more than 1048576 events") {
			t.Errorf("%s: class %q after %d events: %s", name, call.Class, 1000*n, call.Error)
		}
	}
}
