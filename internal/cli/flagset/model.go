package flagset

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"perflab/internal/arch"
	"perflab/internal/study"
)

// LookupModel finds a model's shape by name, or reads it from a config.json.
func LookupModel(name, config string) (arch.Model, error) {
	if config == "" {
		return arch.LookupModel(name)
	}
	m, err := study.ReadModelConfig(name, config)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		return m, fmt.Errorf("read --model-config: %w", err)
	}
	if err != nil {
		return m, fmt.Errorf("--model-config %s: %w", filepath.Base(config), err)
	}
	return m, nil
}
