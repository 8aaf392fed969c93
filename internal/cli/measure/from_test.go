package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"perflab/internal/interop/translate"
)

// TestTranslatedCommands holds the commands that come out of a translation against
// the flags and rules of perflab bench.
func TestTranslatedCommands(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "interop", "translate", "testdata", "commands.txt"))
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, text := range strings.Split(string(b), "\n\n")[1:] {
		x, err := translate.Read(text)
		if err != nil {
			continue // refused, as a test beside the tables has it
		}
		f, fs := &benchFlags{}, pflag.NewFlagSet("bench", pflag.ContinueOnError)
		f.add(fs)
		args := strings.Split(strings.ReplaceAll(strings.Join(x.Args(), "\x00"), "$URL", "http://localhost:8000"), "\x00")
		if err := fs.Parse(args); err != nil {
			t.Errorf("%s\n%v", x, err)
			continue
		}
		if err := f.complete(fs); err != nil {
			t.Errorf("%s\n%v", x, err)
		}
		accepted++
	}
	if accepted < 15 {
		t.Errorf("%d commands are translated, too few to hold anything", accepted)
	}
}
