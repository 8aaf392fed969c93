package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perflab/internal/interop"
)

func TestZZ(t *testing.T) {
	names := os.Getenv("ZZ")
	files, _ := filepath.Glob(names)
	only := os.Getenv("SEV")
	for _, n := range files {
		b, _ := os.ReadFile(n)
		f := interop.Read(filepath.Base(n), b)
		start := time.Now()
		fs := Files([]interop.File{f}, Options{})
		fmt.Println("==", f.Name, len(f.Runs), time.Since(start), "faults", len(f.Faults))
		for _, x := range fs {
			if only != "" && string(x.Severity) != only {
				continue
			}
			fmt.Println(x.Place, x.Severity, x.Type, "|", x.Text, "|", x.Expected)
			for _, a := range x.Also {
				fmt.Print(" +", a.Run.Place.Line)
				if os.Getenv("ALSO") != "" { fmt.Println("      ", a.Place, a.Text) }
			}
			if len(x.Also) > 0 { fmt.Println() }
		}
	}
}
