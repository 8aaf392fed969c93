package study

import (
	"fmt"
	"io"
	"os"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/engine"
)

// mostConfig is the size of a configuration file that is read whole.
const mostConfig = 1 << 20

// ReadCommandFile is the command with the content of the configuration file that it
// names, if any: a path from the working directory. What the engine would not take is
// an *engine.Rejection.
func ReadCommandFile(c engine.Command) (engine.Command, error) {
	e, err := engine.ByName(c.Engine)
	if err != nil || c.FilePath == "" {
		return c, err
	}
	content, err := readConfig(c.FilePath)
	if err != nil {
		return c, fmt.Errorf("configuration file of %s: %w", e.Title, err)
	}
	return c.WithFile(content)
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
		if strings.Contains(err.Error(), "no documents") {
			return nil, fmt.Errorf("%s says nothing: write {} for an empty configuration", path)
		}
		return nil, fmt.Errorf("%s:%s", path, yamlProblems(err)[0])
	}
	return content, nil
}
