package study

import (
	"bytes"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/input"
)

// Sizes of what is read whole. A study of ten thousand candidates has 1 MiB, and
// so have as many recipes.
const (
	MostStudy  = 4 << 20
	mostConfig = 1 << 20 // a configuration of an engine or of a model
)

// ReadFile reads a study file.
func ReadFile(path string) ([]byte, error) { return input.File(path, MostStudy) }

// ReadModelConfig reads the config.json of a model.
func ReadModelConfig(name, path string) (arch.Model, error) {
	data, err := input.File(path, mostConfig)
	if err != nil {
		return arch.Model{}, err
	}
	return arch.ParseConfig(name, bytes.NewReader(data))
}

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
	data, err := input.File(path, mostConfig)
	if err != nil {
		return nil, err
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
