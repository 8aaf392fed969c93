package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/version"
)

func newVersion(env console.Env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "version",
		Short: "Show version, commit, and what this build can do on this system",
		Long: `Show the version, the commit that it was built from, what built it and for which
system, and which features this system has: some need Linux.

What is not known says "unknown": Go keeps the commit of a build from a clone
(go build, go install), and of go run only with -buildvcs=true.`,
		Example: `  perflab version
  perflab version --json`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			info := version.Read()
			if asJSON {
				return console.WriteJSON(env.Stdout, info)
			}
			_, err := fmt.Fprint(env.Stdout, info.Text())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
