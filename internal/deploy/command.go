package deploy

import "perflab/internal/engine"

// RedactCommand is a command with the values of secrets replaced in its flags, its
// environment and its configuration file, so that it can be shown and kept.
func RedactCommand(c engine.Command) engine.Command {
	c.Extra, c.Env = Redact(c.Extra, c.Env)
	if c.File != nil {
		c.File, _ = redactTree("", c.File).(map[string]any)
	}
	return c
}

// redactTree copies a value that stands under a name.
func redactTree(name string, value any) any {
	switch v := value.(type) {
	case string:
		return RedactField(name, v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = redactTree(name, v[i])
		}
		return list
	case map[string]any:
		out := map[string]any{}
		for key, below := range v {
			out[key] = redactTree(key, below)
		}
		return out
	}
	return value
}
