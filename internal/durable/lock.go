package durable

import "errors"

// ErrLocked says that another process holds a file's lock.
var ErrLocked = errors.New("another process holds the lock")
