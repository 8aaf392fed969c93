package callcsv

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The columns have the names that the Parquet file has.
func TestNames(t *testing.T) {
	source, err := os.ReadFile("../../report/parquet/parquet.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile("`parquet:\"([a-z_]+)").FindAllSubmatch(source, -1) {
		want = append(want, string(m[1]))
	}
	for _, c := range callColumns() {
		got = append(got, c.name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-parquet +csv\n%s", d)
	}
}
