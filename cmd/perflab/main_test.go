package main

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/deploy"
	"perflab/internal/test/kubetest"
	"perflab/internal/web/launch"
)

// TestMain makes the test binary a perflab of its own: scripts, and simulated
// engines that a perflab under test starts, run it by that name.
func TestMain(m *testing.M) {
	deploy.GuardMain()
	launch.Main()
	if filepath.Base(os.Args[0]) == routerName {
		os.Exit(routerMain(os.Args[1:]))
	}
	if filepath.Base(os.Args[0]) == dockerName {
		os.Exit(dockerMain(os.Args[1:]))
	}
	if dir := os.Getenv("PERFLAB_TEST_QUEUE"); dir != "" {
		os.Exit(queueMain(dir))
	}
	if os.Getenv("PERFLAB_TEST_MAIN") == "1" {
		os.Exit(cli.Main(console.System(os.Args[1:])))
	}
	// Scripts wait for most of their time. A -parallel of the command line comes later
	// and counts.
	_ = flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))) // a flag of every test binary
	testscript.Main(kubetest.Tests(m), map[string]func(){
		"perflab":  func() { os.Exit(cli.Main(console.System(os.Args[1:]))) },
		routerName: nil, // which TestMain runs
		dockerName: nil, // likewise
	})
}

func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: commands,
		Setup: func(env *testscript.Env) error {
			// A simulated engine is os.Executable started again: the test
			// binary, which this makes a perflab.
			env.Setenv("PERFLAB_TEST_MAIN", "1")
			root, err := os.Getwd()
			env.Setenv("ROOT", root+"/../..")
			return err
		},
	})
}
