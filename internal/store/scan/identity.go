package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"
)

// Digests tells the ID of a run whose calls were read before: by the ID of its header, and by
// size and time stamp of the calls; "" where that is not known. Calls are as long as a disk, and so
// are read once.
type Digests func(early string, calls CallsFile) string

// CallsFile tells one state of a file of calls from others.
type CallsFile struct {
	Size int64 `json:"size"`
	Mod  int64 `json:"mod"` // Unix time in ns
}

// id is a digest of texts, each told from the next.
func id(of ...any) string {
	sum := sha256.New()
	for _, x := range of {
		s := fmt.Sprint(x)
		if b, ok := x.([]byte); ok {
			s = string(b)
		}
		fmt.Fprintf(sum, "%d:%s;", len(s), s)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// runID is the ID of a run that has ended: a digest of its header and of all of its calls. A part of
// the calls, or their size, is not enough: who cuts a file of calls or mends one line of it has
// another run.
func runID(header []byte, calls *os.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, calls); err != nil {
		return "", err
	}
	return id("run", header, sum.Sum(nil)), nil
}

func callsFile(f *os.File) (CallsFile, error) {
	info, err := f.Stat()
	if err != nil {
		return CallsFile{}, err
	}
	return CallsFile{info.Size(), info.ModTime().UnixNano()}, nil
}

// stamp is an instant as a part of an ID.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
