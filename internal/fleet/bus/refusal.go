package bus

import (
	"errors"
	"fmt"
)

// Reason is why a hub or a leader refuses.
type Reason string

// The reasons.
const (
	OtherVersion Reason = "version"    // this perflab and the other do not understand each other
	Replaced     Reason = "replaced"   // another process has connected with this identity
	Revoked      Reason = "revoked"    // the membership was taken back
	Unknown      Reason = "unknown"    // the hub does not know the key
	Invitation   Reason = "invitation" // the invitation is used, ended or unknown
)

// RefusedError says that who is connected to does not want this process. Trying again does not help.
type RefusedError struct {
	Reason Reason
	Text   string // one sentence: what is wrong and what to do
}

func (e *RefusedError) Error() string { return e.Text }

// PinError says that a server has not the certificate authority of the invitation.
type PinError struct {
	Addr, Want, Have string // fingerprints; Have "": it showed none that signs its certificate
}

func (e *PinError) Error() string {
	if e.Have == "" {
		return fmt.Sprintf("the server at %s does not prove that it is the hub of the invitation (fingerprint %s): ask for a new invitation, or look at who answers there", e.Addr, e.Want)
	}
	return fmt.Sprintf("the server at %s is not the hub of the invitation: its fingerprint is %s and should be %s. Ask for a new invitation, or look at who answers there", e.Addr, e.Have, e.Want)
}

// HeldError says that somebody else holds what is claimed.
type HeldError struct {
	Key   string
	Value []byte // of the holder
}

func (e *HeldError) Error() string { return fmt.Sprintf("%s is held by %s", e.Key, e.Value) }

// Errors that callers tell apart.
var (
	ErrAway   = errors.New("the connection to the hub is lost; it comes back by itself")  // nothing was sent, or no answer can come any more
	ErrNobody = errors.New("nobody is there who answers")                                 // no such agent or leader is connected
	ErrLost   = errors.New("the lease has ended: somebody else may hold what it was for") // of Renew and Release
)
