package intake

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"perflab/internal/durable"
	"perflab/internal/input"
	"perflab/internal/redact"
	"perflab/internal/source"
	"perflab/internal/web/guard/place"
	"perflab/internal/web/page"
)

// Bounds of what is sent at once.
const (
	mostSent  = 250e6 // bytes
	mostFiles = 100
	mostName  = 200
)

// stage is what somebody sent, until it is kept or discarded. Its files are called by numbers.
type stage struct {
	ID    string    `json:"-"`
	Dir   string    `json:"-"`
	Who   string    `json:"who"`
	At    time.Time `json:"at"`
	Names []string  `json:"names"` // as the sender calls them, in order
	Bytes int64     `json:"bytes"`
}

const stageFile = "stage.json"

var stageID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// uploads are the files of a stage.
func (st stage) uploads() []source.Upload {
	var out []source.Upload
	for i, name := range st.Names {
		out = append(out, source.Upload{Path: st.path(i), Name: name})
	}
	return out
}

func (st stage) path(i int) string { return filepath.Join(st.Dir, strconv.Itoa(i+1)) }

// stages is the directory of all stages.
func (s *screen) stages() string { return filepath.Join(s.State, "imports") }

// stageOf opens a stage.
func (s *screen) stageOf(id string) (stage, error) {
	gone := page.NotFound("there is nothing here that waits to be kept: it was kept or discarded, or nobody came for a day")
	if !stageID.MatchString(id) {
		return stage{}, gone
	}
	st := stage{ID: id, Dir: filepath.Join(s.stages(), id)}
	b, err := input.File(filepath.Join(st.Dir, stageFile), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return st, gone
	}
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	if err != nil {
		return st, fmt.Errorf("read what was sent: %w", err)
	}
	return st, nil
}

// sweep removes what nobody kept.
func (s *screen) sweep(now time.Time) {
	entries, err := os.ReadDir(s.stages())
	if err != nil {
		return // there is none
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && stageID.MatchString(e.Name()) && now.Sub(info.ModTime()) > keptFor {
			_ = os.RemoveAll(filepath.Join(s.stages(), e.Name())) // the next sweep tries again
		}
	}
}

// receive stages the files and texts of a request as they come.
func (s *screen) receive(r *http.Request, who string) (st stage, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return st, page.Bad("send files or a text, by the form of this page")
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b) // which never fails
	st = stage{ID: hex.EncodeToString(b), Who: who, At: time.Now().UTC()}
	st.Dir = filepath.Join(s.stages(), st.ID)
	if err := durable.MkdirAll(st.Dir); err != nil {
		return st, fmt.Errorf("make room for what is sent: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(st.Dir) // else the sweep does
		}
	}()
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return st, broken(err)
		}
		if err := s.part(&st, p); err != nil {
			return st, err
		}
	}
	if len(st.Names) == 0 {
		return st, page.Bad("nothing was sent: choose a file, or paste what a client printed")
	}
	b, err = json.Marshal(st)
	if err != nil {
		return st, fmt.Errorf("write down what was sent: %w", err)
	}
	return st, durable.WriteFile(filepath.Join(st.Dir, stageFile), b, 0o600)
}

// broken is what a reader is told of a request that ends before its time.
func broken(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &page.Problem{Status: http.StatusRequestEntityTooLarge, Text: "what was sent is larger than " + page.Size(mostSent) + ", the most at once", Hint: "Send fewer files, or import large ones at a terminal: perflab import FILE."}
	}
	return page.Bad("what was sent broke off: send it again")
}

// part stages one file or text of a form.
func (s *screen) part(st *stage, p *multipart.Part) error {
	var name string
	switch p.FormName() {
	case "files":
		name = p.FileName()
		if name == "" {
			return nil // nothing was chosen
		}
	case "text":
		name = "pasted.txt"
	default:
		return nil
	}
	if len(st.Names) == mostFiles {
		return page.Bad(fmt.Sprintf("there are more than %d files: send fewer at once", mostFiles))
	}
	f, err := os.OpenFile(st.path(len(st.Names)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write what is sent: %w", err)
	}
	n, err := io.Copy(s.Disk.Writer(st.Dir, f), p)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if full, ok := errors.AsType[*place.FullError](err); ok {
		return &page.Problem{Status: http.StatusInsufficientStorage, Text: full.Error()}
	}
	if err != nil {
		return broken(err)
	}
	if n == 0 && p.FormName() == "text" {
		return os.Remove(st.path(len(st.Names)))
	}
	st.Names, st.Bytes = append(st.Names, cleaned(name, len(st.Names)+1)), st.Bytes+n
	return nil
}

// cleaned is a name that somebody else gave a file, as far as it can be shown and named after.
func cleaned(name string, n int) string {
	name = filepath.Base(strings.ReplaceAll(redact.Text(redact.Printable(name)), `\`, "/"))
	if r := []rune(name); len(r) > mostName {
		name = string(r[:mostName])
	}
	if place.Check(name) != nil {
		name = ""
	}
	return cmp.Or(name, fmt.Sprintf("file-%d", n))
}
