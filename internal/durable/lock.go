package durable

import "errors"

// errLocked says that another process holds a file's lock.
var errLocked = errors.New("another process holds the lock")
