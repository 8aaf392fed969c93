package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// UnreachableError says that the server of the database does not answer. It wraps nothing: that a
// socket is not there does not mean that what was asked for is not.
type UnreachableError struct {
	Index string
	Err   error
}

func (e *UnreachableError) Error() string {
	return "the index " + e.Index + " cannot be asked: " + e.Err.Error()
}

// Hint says what to do.
func (e *UnreachableError) Hint() string {
	return "It works again as soon as its database does: try again in a moment, or see whether the database runs."
}

// Unavailable says that it passes.
func (e *UnreachableError) Unavailable() bool { return true }

// unreachable reports whether an error is of the way to a server, or of one that starts or ends.
func unreachable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") // it is shut down, starts, lost the connection
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
