package runs

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"perflab/internal/test/storetest"
)

// TestDocuments: a report is made once for all who look at it, anew when a file changes, and no more
// are kept than there is room for.
func TestDocuments(t *testing.T) {
	root := t.TempDir()
	d := newDocuments()
	of := func(dir string) *document {
		t.Helper()
		doc, err := d.of(context.Background(), dir, false)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	dir := storetest.Run{N: 1}.Write(t, root, "a")
	var wait sync.WaitGroup
	got := make([]*document, 8)
	for i := range got {
		wait.Go(func() { got[i], _ = d.of(context.Background(), dir, false) })
	}
	wait.Wait()
	for _, doc := range got {
		if doc == nil || doc != got[0] {
			t.Fatal("it was made more than once")
		}
	}
	storetest.WriteFile(t, filepath.Join(dir, "more.log"), []byte("x"))
	if of(dir) == got[0] {
		t.Error("it is kept though a file came")
	}
	d.most = 2*of(dir).size() + 100
	first := of(dir)
	for i, name := range []string{"b", "c"} {
		of(storetest.Run{N: 2 + i}.Write(t, root, name))
	}
	if len(d.kept) != 2 || len(d.order) != 2 || d.bytes > d.most || of(dir) == first {
		t.Errorf("%d of %d bytes in %d are kept", d.bytes, d.most, len(d.kept))
	}
	if err := os.Remove(filepath.Join(dir, "header.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.of(context.Background(), dir, false); err == nil || d.kept[dir] != nil {
		t.Errorf("what cannot be made is kept: %v", err)
	}
	sum := 0
	for _, k := range d.kept {
		sum += k.doc.size()
	}
	if sum != d.bytes {
		t.Errorf("%d bytes are counted, %d are kept", d.bytes, sum)
	}
}
