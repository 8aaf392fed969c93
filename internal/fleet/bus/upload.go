package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// What an agent asks for to bring a file: at first of anybody who takes files, then of the one who has answered.
const (
	uploadAsk  = "bus.put"
	mostUpload = 8 << 30 // of an agent's file: so much of the hub's disk one may take
)

// upload is what an agent says: a piece of a file, after the line that this is.
type upload struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"` // of the piece
}

// uploaded is the answer.
type uploaded struct {
	Taker string `json:"taker"` // who takes the file
	Have  int64  `json:"have"`  // the bytes that it has
	Done  bool   `json:"done"`  // all of it is in the store, and right
	Wrong string `json:"wrong"` // why it never will be
}

// upload brings an agent's file to the hub, from where its last try ended.
func (c depot) upload(ctx context.Context, f *os.File, digest string, size int64) error {
	if size > mostUpload {
		return fmt.Errorf("it is larger than %d GiB, the most that an agent may bring", mostUpload>>30)
	}
	piece := make([]byte, pieceSize)
	u, taker := upload{Digest: digest, Size: size}, ""
	for n, waits := 0, 0; ; { // the first question has no piece
		what := uploadAsk
		if taker != "" {
			what += "." + taker
		}
		answer, err := c.askUpload(ctx, what, u, piece[:n])
		switch {
		case errors.Is(err, ErrNobody) && taker != "": // it is gone: another one may be there
			taker, n = "", 0
			continue
		case err != nil:
			return err
		case answer.Wrong != "":
			return errors.New(answer.Wrong)
		case answer.Done:
			return nil
		}
		taker, u.Offset = answer.Taker, answer.Have
		if n = int(min(pieceSize, size-u.Offset)); n > 0 {
			waits = 0
			if _, err := f.ReadAt(piece[:n], u.Offset); err != nil {
				return fmt.Errorf("the file has changed while it was sent: %w", err)
			}
			continue
		}
		if err := rest(ctx, waits); err != nil { // it has all, and puts it into the store
			return err
		}
		waits++
	}
}

// askUpload asks until there is an answer.
func (c depot) askUpload(ctx context.Context, what string, u upload, piece []byte) (uploaded, error) {
	head, err := json.Marshal(u)
	if err != nil {
		return uploaded{}, err
	}
	data := append(append(head, '\n'), piece...)
	for try := 0; ; try++ {
		b, err := c.askFor(ctx, Up(c.id.ID, what), data)
		if err == nil {
			var answer uploaded
			return answer, json.Unmarshal(b, &answer)
		}
		if ctx.Err() != nil || !passing(err) || errors.Is(err, ErrNobody) && what != uploadAsk {
			return uploaded{}, err
		}
		if rested := rest(ctx, try); rested != nil {
			return uploaded{}, errors.Join(err, rested)
		}
	}
}

// rest waits before the next try.
func rest(ctx context.Context, try int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause(try)):
		return nil
	}
}

// taker takes files from agents: each has one on its way at most.
type taker struct {
	c   depot
	dir string // of what is on its way

	mu    sync.Mutex
	files map[string]*arriving // by agent
	wg    sync.WaitGroup       // what is put into the store
}

// arriving is a file on its way.
type arriving struct {
	upload
	file  *os.File
	have  int64
	ended bool // all is there, and is looked at or was
	done  bool
	wrong string
}

// takeFiles has a connection take files from agents, and put them into the store once they are whole and right.
func (c depot) takeFiles(dir string) (stop func(), err error) {
	t := &taker{c: c, dir: dir, files: map[string]*arriving{}}
	if err := os.RemoveAll(dir); err != nil { // what others have left
		return func() {}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return func() {}, err
	}
	first, err := c.subscribe(Up("*", uploadAsk), "uploads", sameVersion, t.take)
	if err != nil {
		return t.close, err
	}
	then, err := c.subscribe(Up("*", uploadAsk+"."+c.instance), "", sameVersion, t.take)
	return func() { first(); then(); t.close() }, err
}

func (t *taker) close() {
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.files {
		a.close()
	}
	_ = os.RemoveAll(t.dir) // else the next one removes it
}

func (a *arriving) close() {
	if a.file != nil {
		_ = a.file.Close() // it is removed next
		_ = os.Remove(a.file.Name())
		a.file = nil
	}
}

// take takes a piece and says how far the file is.
func (t *taker) take(m Message) {
	answer := t.piece(m.From, m.Data)
	b, err := json.Marshal(answer)
	if err == nil && m.Reply != nil {
		err = m.Reply(b)
	}
	if err != nil {
		t.c.o.Log.Warn("an answer to an agent that brings a file was not sent", "agent", m.From, "error", err)
	}
}

func (t *taker) piece(agent string, data []byte) uploaded {
	head, piece, _ := bytes.Cut(data, []byte("\n"))
	var u upload
	if err := json.Unmarshal(head, &u); err != nil || !fingerprintForm.MatchString(u.Digest) || u.Size < 0 || u.Size > mostUpload {
		return uploaded{Wrong: "the hub does not understand which file is to come"}
	}
	first := len(piece) == 0 && u.Offset == 0
	if first && t.has(u.Digest) {
		return uploaded{Taker: t.c.instance, Have: u.Size, Done: true}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.files[agent]
	if a != nil && !a.upload.same(u) && a.ended && !a.done && a.wrong == "" {
		return uploaded{Wrong: "the hub has the agent's file before this one, and still puts it into its store: try again"}
	}
	if a == nil || !a.upload.same(u) || first && (a.done || a.wrong != "") {
		var err error
		if a, err = t.begin(agent, u); err != nil {
			return uploaded{Wrong: "the hub cannot keep the file: " + err.Error()}
		}
	}
	if u.Offset == a.have && len(piece) > 0 && !a.ended {
		if err := a.add(piece); err != nil {
			a.ended, a.wrong = true, "the hub cannot keep the file: "+err.Error()
			a.close()
		}
	}
	if a.have == a.Size && !a.ended {
		a.ended = true
		t.wg.Go(func() { t.finish(a) })
	}
	return uploaded{Taker: t.c.instance, Have: a.have, Done: a.done, Wrong: a.wrong}
}

func (u upload) same(v upload) bool { return u.Digest == v.Digest && u.Size == v.Size }

// has says whether the store has a file. Where it does not say, the file comes once more.
func (t *taker) has(digest string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	there, err := t.c.lasting(ctx, digest)
	return err == nil && there
}

// begin takes a new file in; what the agent brought before and did not finish is forgotten.
func (t *taker) begin(agent string, u upload) (*arriving, error) {
	if old := t.files[agent]; old != nil {
		old.close()
		delete(t.files, agent)
	}
	file, err := os.OpenFile(filepath.Join(t.dir, agent), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	a := &arriving{upload: u, file: file}
	t.files[agent] = a
	return a, nil
}

func (a *arriving) add(piece []byte) error {
	if int64(len(piece)) > a.Size-a.have {
		return errors.New("more of it comes than there should be")
	}
	n, err := a.file.WriteAt(piece, a.have)
	a.have += int64(n)
	return err
}

// finish holds a file against its digest and puts it into the store.
func (t *taker) finish(a *arriving) {
	err := t.keep(a)
	t.mu.Lock()
	defer t.mu.Unlock()
	a.close()
	if a.done = err == nil; err != nil {
		a.wrong = "the hub cannot keep the file: " + err.Error()
	}
}

func (t *taker) keep(a *arriving) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(a.file, 0, a.Size)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.Digest {
		return errors.New("what has come is another file than its SHA-256 says")
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	there, err := t.c.lasting(ctx, a.Digest)
	if err != nil || there {
		return err
	}
	return t.c.send(ctx, a.file, a.Digest, contents{a.Size, pieces(a.Size)})
}

// storeWithin is how long the store may take for a file that has come.
const storeWithin = 10 * time.Minute
