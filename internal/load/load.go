// Package load sends a workload on time through a sender to one or more
// targets, bounds concurrency, collects calls and judges its own punctuality.
package load

import (
	"context"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload"
)

// Sender sends one request and reports everything it saw. Offsets in the Call
// count from start on the monotonic clock. A failed request is a Call with a
// class, not a Go error. Send fills Sent and all that follows; Run fills
// Index, Target, Due, Ready, WantIn and Want. Send must return soon after ctx
// is cancelled.
type Sender interface {
	Send(ctx context.Context, start time.Time, r workload.Request) result.Call
}
