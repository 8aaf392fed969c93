package deploytest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// crowd is how many tests run at once: each of them waits for nine tenths of its time.
const crowd = 10

// Main runs a package's tests, more at once than there are processors unless -parallel says
// how many, and looks for goroutines that they leave.
func Main(m interface{ Run() int }) int {
	widen()
	code := m.Run()
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		return code // package testing leaves one of its own
	}
	if left := goroutines(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left after the tests:\n%s", left)
		return 1
	}
	return code
}

// goroutines are those that run beside the caller's, once they have had time to end.
func goroutines() string {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if runtime.NumGoroutine() == 1 {
			return ""
		}
		if time.Now().After(end) {
			var b strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&b, 1) // a Builder takes all
			return b.String()
		}
	}
}

// widen lets more tests run at once.
func widen() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", strconv.Itoa(max(crowd, runtime.GOMAXPROCS(0)))) // a flag of every test binary
	}
}
