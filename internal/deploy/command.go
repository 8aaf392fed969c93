package deploy

import (
	"perflab/internal/engine"
	"perflab/internal/redact"
)

// RedactCommand is a command with the values of secrets replaced in its flags, its
// environment and its configuration file, so that it can be shown and kept.
func RedactCommand(c engine.Command) engine.Command {
	for _, words := range []*[]string{&c.Extra, &c.Unread, &c.Prefill.Extra, &c.Decode.Extra, &c.Router} {
		*words = redact.Argv(*words)
	}
	c.Env = redact.Env(c.Env)
	if c.File != nil {
		c.File, _ = redact.Tree("", c.File).(map[string]any)
	}
	return c
}
