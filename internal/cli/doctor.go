package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/doctor"
	"perflab/internal/version"
)

func newDoctor(env console.Env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine has, and what perflab can do with it",
		Long: `Look at this machine: system, processors, accelerators with their driver, installed
engines, servers that answer on the engines' usual ports, Docker, ssh, models in the
Hugging Face cache, limits and clock. Then say what each command can do here, with a
command line to try, and what is missing and how to get it.

It takes some seconds: each check has a time limit of its own, and one that does not
end is named. Nothing is changed, and nothing is asked of another machine. Engines are
not imported: their versions are those that their installation wrote down.`,
		Example: `  perflab doctor
  perflab doctor --json`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := examine(c.Context(), env)
			if err != nil {
				return err
			}
			if asJSON {
				return console.WriteJSON(env.Stdout, r)
			}
			_, err = fmt.Fprint(env.Stdout, r.Text())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// examine looks at this machine, and says on a terminal that it does.
func examine(ctx context.Context, env console.Env) (doctor.Report, error) {
	live := console.StartLive(env, func() string { return "looking at this machine" }, nil)
	defer live.End()
	r := doctor.Look(ctx, doctor.System(version.Read()))
	return r, context.Cause(ctx)
}
