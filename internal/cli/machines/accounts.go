package machines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/durable"
	"perflab/internal/fleet/bus"
)

func newAccounts(env console.Env) *cobra.Command {
	dir := ""
	c := &cobra.Command{
		Use:   "accounts NAME...",
		Short: "Make keys and the configuration by which an outside NATS server is the hub",
		Long: `Make a key for the leader and one for each agent that is named, and the part of the
configuration of a NATS server that lets each of them do what it may and nothing else.

The files NAME.nk are secrets: give each to its machine alone. The server's file,
accounts.conf, has none. On the machines:

  perflab agent --hub tls://nats.example.org:4222 --hub-seed load-1.nk
  perflab bench --fleet all --hub tls://nats.example.org:4222 --hub-seed leader.nk ...`,
		Example: "  perflab fleet accounts load-1 load-2 --out keys",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usage(errors.New("fleet accounts needs the names of agents"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return makeAccounts(env, dir, args) },
	}
	c.Flags().StringVar(&dir, "out", "fleet-keys", "directory to make")
	return c
}

func makeAccounts(env console.Env, dir string, names []string) error {
	if _, err := os.Stat(dir); err == nil {
		return console.Usage(fmt.Errorf("%s is there already: keys are never replaced; name another directory by --out", dir))
	}
	var users []bus.User
	add := func(name string, role bus.Role) error {
		for _, u := range users {
			if u.Name == name {
				return console.Usage(fmt.Errorf("two machines cannot both be called %s", name))
			}
		}
		if name == "" || name != filepath.Base(name) {
			return console.Usage(fmt.Errorf("%q is no name of a machine: it becomes the name of a file", name))
		}
		u, err := bus.NewUser(name, role)
		users = append(users, u)
		return err
	}
	if err := add("leader", bus.Leader); err != nil {
		return err
	}
	for _, name := range names {
		if err := add(name, bus.Agent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of keys: %w", err)
	}
	for _, u := range users {
		if err := durable.WriteFile(filepath.Join(dir, u.Name+".nk"), []byte(u.Seed+"\n"), 0o600); err != nil {
			return fmt.Errorf("keep the key of %s: %w", u.Name, err)
		}
	}
	path := filepath.Join(dir, "accounts.conf")
	if err := durable.WriteFile(path, []byte(bus.Accounts(users)), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err := fmt.Fprintf(env.Stdout, "Keys of %s in %s; the server's part is %s\n", console.Plural(len(users), "user"), dir, path)
	return err
}
