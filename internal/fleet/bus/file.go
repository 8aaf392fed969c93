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
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"perflab/internal/durable"
	"perflab/internal/field"
)

// How files lie in the hub: pieces in their order, and when all are there the contents.
const (
	pieceSize  = 512 << 10
	mostFile   = 64 << 30
	keepFiles  = 14 * 24 * time.Hour
	sendAhead  = 8          // pieces that are on their way to the hub
	fetchAhead = 8          // and from it
	fileAsk    = "bus.file" // what an agent asks for
)

// contents say how much of a file there is.
type contents struct {
	Size   int64 `json:"size"`
	Pieces int   `json:"pieces"`
}

func pieces(size int64) int { return int((size + pieceSize - 1) / pieceSize) }

func pieceSubject(digest string, i int) string { return fileSubjects + digest + "." + strconv.Itoa(i) }
func contentsSubject(digest string) string     { return fileSubjects + digest + ".contents" }

// MissingError says that the hub has no file with a digest.
type MissingError struct{ Digest string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the hub has no file with the SHA-256 %s (any more: it keeps files for %d days): bring it there again", e.Digest, keepFiles/(24*time.Hour))
}

// PutFile brings a file to the hub and says its SHA-256 in hexadecimal. What is there already is not sent. While the
// connection is away an agent waits, for as long as its context lets it.
func (c *Conn) PutFile(ctx context.Context, path string) (digest string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	if size > mostFile {
		return "", fmt.Errorf("%s is larger than %d GiB, the most that the hub keeps: copy it to the agents yourself", path, mostFile>>30)
	}
	digest = hex.EncodeToString(sum.Sum(nil))
	if err := (depot{c}).bring(ctx, f, digest, size); err != nil {
		return "", fmt.Errorf("bring %s to the hub: %w", path, err)
	}
	return digest, nil
}

func (c depot) bring(ctx context.Context, f *os.File, digest string, size int64) error {
	if c.id.Role == Agent { // which may not speak to the store
		c.uploading.Lock() // of an agent the hub takes one file at a time
		defer c.uploading.Unlock()
		return c.upload(ctx, f, digest, size)
	}
	there, err := c.lasting(ctx, digest)
	if err == nil && !there {
		err = c.send(ctx, f, digest, contents{size, pieces(size)})
	}
	return err
}

// makeRoom forgets the oldest files until there is room for another.
func (c depot) makeRoom(ctx context.Context, size int64) error {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return c.stored(err)
	}
	room, err := strconv.ParseInt(s.CachedInfo().Config.Metadata[roomKey], 10, 64)
	if err != nil || room == 0 {
		return nil // the server's own limit is all there is
	}
	size += size/100 + pieceSize // a piece takes a little more than it has
	if size > room {
		return fmt.Errorf("the hub has room for files of %d MiB in all, and it has %d MiB: make room on the disk of the hub's directory, and start the hub again", room>>20, size>>20)
	}
	for {
		info, err := s.Info(ctx)
		if err != nil {
			return c.stored(err)
		}
		if info.State.Msgs == 0 || int64(info.State.Bytes)+size <= room {
			return nil
		}
		oldest, err := s.GetMsg(ctx, info.State.FirstSeq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // somebody else makes room too
		} else if err != nil {
			return c.stored(err)
		}
		digest := digestOf(oldest.Subject)
		c.o.Log.Info("the hub forgets its oldest file, for another needs the room", "sha256", digest)
		if err := s.Purge(ctx, jetstream.WithPurgeSubject(fileSubjects+digest+".>")); err != nil {
			return c.stored(err)
		}
	}
}

// lasting says that the hub has a file and will have it for long enough. It forgets the oldest piece first.
func (c depot) lasting(ctx context.Context, digest string) (bool, error) {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return false, c.stored(err)
	}
	last, err := s.GetLastMsgForSubject(ctx, contentsSubject(digest))
	var what contents
	if err == nil {
		err = json.Unmarshal(last.Data, &what)
	}
	if err == nil && what.Pieces > 0 {
		last, err = s.GetLastMsgForSubject(ctx, pieceSubject(digest, 0))
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, nil
	case err != nil:
		return false, c.stored(err)
	}
	return time.Since(last.Time) < keepFiles/2, nil
}

// send sends all pieces and then the contents. A file that changes meanwhile is not finished.
func (c depot) send(ctx context.Context, f *os.File, digest string, what contents) error {
	if err := c.makeRoom(ctx, what.Size); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	acks := make(chan jetstream.PubAckFuture, sendAhead) // the bound of what is on its way
	for i := range what.Pieces {
		b := make([]byte, min(pieceSize, what.Size-int64(i)*pieceSize))
		if _, err := io.ReadFull(f, b); err != nil {
			return fmt.Errorf("the file has changed while it was sent: %w", err)
		}
		_, _ = sum.Write(b) // never fails
		if len(acks) == sendAhead {
			if err := c.acknowledged(ctx, <-acks); err != nil {
				return err
			}
		}
		ack, err := c.js.PublishMsgAsync(&nats.Msg{Subject: pieceSubject(digest, i), Data: b})
		if err != nil {
			return c.stored(err)
		}
		acks <- ack
	}
	for len(acks) > 0 {
		if err := c.acknowledged(ctx, <-acks); err != nil {
			return err
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != digest {
		return errors.New("the file has changed while it was sent")
	}
	b, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if _, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: contentsSubject(digest), Data: b}); err != nil {
		return c.stored(err)
	}
	return nil
}

// acknowledged waits until the hub has a piece on its disk.
func (c depot) acknowledged(ctx context.Context, ack jetstream.PubAckFuture) error {
	c.mu.Lock()
	link := c.link
	c.mu.Unlock()
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return c.stored(err)
	case <-time.After(askWithin):
		return c.stored(context.DeadlineExceeded)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-link.Done():
		return ErrAway
	}
}

// GetFile fetches a file by its SHA-256. The path leads to all of it, or to what it led to before. While the connection
// is away it waits, for as long as its context lets it.
func (c *Conn) GetFile(ctx context.Context, digest, path string) error {
	if !fingerprintForm.MatchString(digest) {
		return field.Errorf("digest", "%q is no SHA-256 in hexadecimal", digest)
	}
	err := durable.Replace(path, func(w io.Writer) error {
		sum := sha256.New()
		if err := (depot{c}).fetch(ctx, digest, io.MultiWriter(w, sum)); err != nil {
			return err
		}
		if have := hex.EncodeToString(sum.Sum(nil)); have != digest {
			return fmt.Errorf("what the hub has sent has the SHA-256 %s: the hub's store is damaged", have)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("fetch the file %.12s from the hub: %w", digest, err)
	}
	return nil
}

// piece is one that comes.
type piece struct {
	data []byte
	err  error
}

// fetch writes all pieces in their order, and asks for the next ones meanwhile.
func (c depot) fetch(ctx context.Context, digest string, w io.Writer) error {
	b, err := c.ask(ctx, contentsSubject(digest))
	if err != nil {
		return err
	}
	var what contents
	if err := json.Unmarshal(b, &what); err != nil || what.Pieces != pieces(what.Size) || what.Size > mostFile {
		return errors.New("the hub's contents of it are damaged: bring the file there again")
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ahead := make(chan chan piece, fetchAhead) // the bound of what is on its way
	wg.Go(func() {
		defer close(ahead)
		for i := range what.Pieces {
			one := make(chan piece, 1)
			select {
			case ahead <- one:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				b, err := c.ask(ctx, pieceSubject(digest, i))
				one <- piece{b, err}
			})
		}
	})
	for one := range ahead {
		p := <-one
		if p.err != nil {
			return p.err
		}
		if _, err := w.Write(p.data); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// ask asks for what lies under a subject of files until it comes: a leader itself, an agent whoever serves files.
func (c depot) ask(ctx context.Context, subject string) ([]byte, error) {
	for try := 0; ; try++ {
		var b []byte
		var err error
		if c.id.Role == Leader {
			b, err = c.read(ctx, subject)
		} else {
			b, err = c.askFor(ctx, Up(c.id.ID, fileAsk), []byte(subject[len(fileSubjects):]))
		}
		if err == nil && len(b) == 0 {
			return nil, &MissingError{digestOf(subject)}
		}
		if err == nil || ctx.Err() != nil || !passing(err) {
			return b, err
		}
		if rested := rest(ctx, try); rested != nil {
			return nil, errors.Join(err, rested)
		}
	}
}

// passing says that an error may be gone when the connection or the hub is back.
func passing(err error) bool {
	return errors.Is(err, ErrAway) || errors.Is(err, ErrNobody) || errors.Is(err, context.DeadlineExceeded)
}

// askWithin is how long a piece may take until it is asked for again, or given up.
const askWithin = 20 * time.Second

func (c depot) askFor(ctx context.Context, subject string, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.request(ctx, subject, data)
}

// read takes what lies under a subject out of the hub's store; nothing where there is nothing.
func (c depot) read(ctx context.Context, subject string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return nil, c.stored(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, nil
	case err != nil:
		return nil, c.stored(err)
	}
	return m.Data, nil
}

func digestOf(subject string) string {
	b, _, _ := bytes.Cut([]byte(subject[len(fileSubjects):]), []byte("."))
	return string(b)
}

// partForm is what an agent may ask for: it must know the digest.
var partForm = regexp.MustCompile(`^[0-9a-f]{64}\.(contents|[0-9]{1,9})$`)

// serveFiles reads files for agents, which may not ask the store itself.
func (c depot) serveFiles() (stop func(), err error) {
	return c.subscribe(Up("*", fileAsk), "files", sameVersion, func(m Message) {
		if !partForm.Match(m.Data) {
			c.o.Log.Warn("an agent asks for something that is no part of a file", "agent", m.From)
			return
		}
		b, err := c.read(context.Background(), fileSubjects+string(m.Data))
		if err != nil {
			c.o.Log.Warn("a file could not be read for an agent", "agent", m.From, "error", err)
			return // it asks again
		}
		if m.Reply == nil {
			return
		}
		if err := m.Reply(b); err != nil {
			c.o.Log.Warn("a piece of a file was not sent", "agent", m.From, "error", err)
		}
	})
}
