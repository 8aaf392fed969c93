//go:build !linux

package wire

import (
	"context"
	"io"
	"net"
)

func haveKernelStamps() bool { return false }

func keepStamping() io.Closer { return nil }

func stampConn(nc net.Conn) *stamped { return &stamped{Conn: nc} }

// pool is the event loop's; this system has none.
type pool struct{ count count }

func newPool(Config) *pool { return nil }

type sent struct{}

func (*pool) start(*Exchange) *sent                      { return nil }
func (*pool) do(context.Context, *Exchange, *sent) error { return nil }
func (*pool) open(context.Context, int) error            { return nil }
func (*pool) close()                                     {}
