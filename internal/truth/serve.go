package truth

import (
	"context"
	"net"
)

// Serve answers on l until ctx ends, and closes it.
func Serve(ctx context.Context, l net.Listener, p Params) error {
	b, err := newBook(p)
	if err != nil {
		l.Close()
		return err
	}
	if tcp, ok := l.(*net.TCPListener); ok && fastHere {
		return serveFast(ctx, tcp, b)
	}
	return servePortable(ctx, l, b)
}
