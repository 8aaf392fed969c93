package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Read is what was read of one session.
type Read struct {
	Session
	Empty int // requests that were left out because their prompt or answer has no tokens

	// Of TraceLab's rows alone:
	Undated  int // requests that were left out because nothing says when they were sent
	Repeated int // rows that were left out because they were there before
	Joined   int // other sessions that were taken for its agents
}

// Parse reads one session, a JSON object in perflab's own form or in WEKA's, which is
// known by its requests. A session without a request that can be sent has no turns.
func Parse(object []byte) (Read, error) {
	var form struct {
		Turns    json.RawMessage `json:"turns"`
		Requests json.RawMessage `json:"requests"`
	}
	if err := decode(object, &form, false); err != nil {
		return Read{}, err
	}
	var s Session
	var err error
	switch {
	case form.Turns != nil && form.Requests != nil:
		return Read{}, errors.New("a session has turns (perflab's own form) or requests (WEKA's), not both")
	case form.Turns != nil:
		var n nativeSession
		if err = decode(object, &n, true); err != nil {
			return Read{}, fmt.Errorf("%w (accepted keys: %s)", err, nativeKeys)
		}
		s, err = n.session()
	case form.Requests != nil:
		var w wekaSession
		if err = decode(object, &w, false); err != nil { // its recorders add keys that say nothing of the load
			return Read{}, err
		}
		s, err = w.session()
	default:
		return Read{}, errors.New("is no session of agents: it has neither turns (perflab's own form) nor requests (WEKA's), nor is it a request of one (session_id and input_tokens_total, TraceLab's)")
	}
	if err != nil {
		return Read{}, err
	}
	return s.read()
}

// read leaves out requests that cannot be sent.
func (s Session) read() (Read, error) {
	empty := func(i int) bool {
		t := s.Turns[i]
		return t.Input >= 0 && t.Output >= 0 && (t.Input == 0 || t.Output == 0)
	}
	for i, t := range s.Turns {
		if slices.ContainsFunc(t.After, func(k int) bool { return k < 0 || k >= i }) {
			return Read{}, fmt.Errorf("request %d waits for %v: counted from 0, a request can wait for those before it", i, t.After)
		}
	}
	all := len(s.Turns)
	s = s.without(empty)
	if err := s.check(); err != nil {
		return Read{}, err
	}
	s.shareBlocks()
	return Read{Session: s, Empty: all - len(s.Turns)}, nil
}

// decode reads one JSON object.
func decode(object []byte, v any, strict bool) error {
	if !bytes.HasPrefix(bytes.TrimSpace(object), []byte("{")) {
		return errors.New("is no JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(v); err != nil {
		return errors.New(inWords(err))
	}
	if len(bytes.TrimSpace(object[dec.InputOffset():])) > 0 {
		return errors.New("more follows the JSON object")
	}
	return nil
}
