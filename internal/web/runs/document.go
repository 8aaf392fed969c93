package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"slices"
	"sync"

	"perflab/internal/dirdoc"
	"perflab/internal/report/audited"
	"perflab/internal/report/doc"
	"perflab/internal/source"
)

// document is the report of a directory as parts of a page.
type document struct {
	Title    string
	Banner   string
	Contents template.HTML
	Body     template.HTML
	Audit    template.HTML // of an import
	Damage   string
}

// size is roughly what it takes of memory.
func (d *document) size() int { return len(d.Contents) + len(d.Body) + len(d.Audit) + 1000 }

// documents keeps the reports of directories that were looked at, each for as long as the files of
// its directory are as they were. What is not kept is made anew: it costs a reading of the calls.
type documents struct {
	most int // bytes

	mu      sync.Mutex
	kept    map[string]*keptDocument // by directory
	order   []string                 // the one used last at the end
	bytes   int
	working chan struct{} // how many are made at once: a long run takes much memory
}

type keptDocument struct {
	stamp string
	done  chan struct{} // closed once it is made
	doc   *document
	err   error
}

const (
	mostDocuments = 64 << 20 // bytes
	madeAtOnce    = 2
)

func newDocuments() *documents {
	return &documents{most: mostDocuments, kept: map[string]*keptDocument{}, working: make(chan struct{}, madeAtOnce)}
}

// of is the document of a directory. Several who ask at once have it made once.
func (d *documents) of(ctx context.Context, dir string, imported bool) (*document, error) {
	stamp, err := stampOf(dir)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	k := d.kept[dir]
	mine := k == nil || k.stamp != stamp
	if mine {
		d.drop(dir)
		k = &keptDocument{stamp: stamp, done: make(chan struct{})}
		d.kept[dir] = k
	}
	d.use(dir)
	d.mu.Unlock()
	if mine {
		d.make(k, dir, imported)
	}
	select {
	case <-k.done:
		return k.doc, k.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// make makes a document, and keeps it if it could be made.
func (d *documents) make(k *keptDocument, dir string, imported bool) {
	d.working <- struct{}{}
	defer func() { <-d.working }()
	defer close(k.done)
	k.doc, k.err = makeDocument(dir, imported)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept[dir] != k {
		return
	}
	if k.err != nil {
		d.forget(dir)
		return
	}
	d.bytes += k.doc.size()
	for d.bytes > d.most && len(d.order) > 1 {
		d.drop(d.order[0])
	}
}

// drop forgets a document that was kept.
func (d *documents) drop(dir string) {
	k := d.kept[dir]
	if k == nil {
		return
	}
	select {
	case <-k.done:
		if k.doc != nil {
			d.bytes -= k.doc.size()
		}
	default: // its size was not counted yet
	}
	d.forget(dir)
}

func (d *documents) forget(dir string) {
	delete(d.kept, dir)
	d.order = slices.DeleteFunc(d.order, func(s string) bool { return s == dir })
}

func (d *documents) use(dir string) {
	d.order = append(slices.DeleteFunc(d.order, func(s string) bool { return s == dir }), dir)
}

// makeDocument reads a directory.
func makeDocument(dir string, imported bool) (*document, error) {
	d, err := dirdoc.Open([]string{dir}, dirdoc.Options{})
	if err != nil {
		return nil, err
	}
	f := doc.Parts(d.Page())
	out := &document{Title: f.Title, Banner: f.Banner, Damage: d.Damage,
		Contents: template.HTML(f.Contents), Body: template.HTML(f.Body)} // package doc has escaped all text in it
	if imported {
		p := source.Audit(dir)
		out.Audit = template.HTML(doc.Parts(audited.Audit{Files: p.Files, Findings: p.Findings}.Document()).Body)
	}
	return out, nil
}

// mostStamped bounds the files that a stamp is made of.
const mostStamped = 20_000

// stampOf changes when a file below a directory does.
func stampOf(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum, n := sha256.New(), 0
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n++; n > mostStamped {
			return fs.SkipAll
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s\x00%d\x00%d\x00", path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look through %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
