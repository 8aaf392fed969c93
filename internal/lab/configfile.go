package lab

import (
	"fmt"
	"io"
	"os"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/engine"
)

// mostConfig is the size of a configuration file that is read whole.
const mostConfig = 1 << 20

// ReadCommandFile is the command with the content of the configuration file that it
// names, if any: a path from the working directory. What the engine would not take is
// an *engine.Rejection.
func ReadCommandFile(c engine.Command) (engine.Command, error) {
	if e, err := engine.ByName(c.Engine); err != nil || c.FilePath == "" {
		return c, err
	} else if content, err := readConfig(c.FilePath); err != nil {
		return c, fmt.Errorf("configuration file of %s: %w", e.Title, err)
	} else {
		return c.WithFile(content)
	}
}

func readConfig(path string) (map[string]any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostConfig {
		return nil, fmt.Errorf("%s has more than %d bytes: is it the right file?", path, mostConfig)
	}
	content := map[string]any{}
	if err := yaml.Load(data, &content); err != nil {
		return nil, fmt.Errorf("%s:%s", path, yamlProblems(err)[0])
	}
	return content, nil
}
