// Command perflab benchmarks and tunes LLM serving engines. See README.md.
package main

import (
	"os"

	"perflab/internal/cli"
	"perflab/internal/cli/console"
	"perflab/internal/deploy"
	"perflab/internal/web/launch"
)

func main() {
	deploy.GuardMain()
	launch.Main()
	os.Exit(cli.Main(console.System(os.Args[1:])))
}
