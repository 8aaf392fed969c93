package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"perflab/internal/engine"
	"perflab/internal/rundir"
)

// enginesFile is what installed engines said of their flags, for the next part of a
// study: a Python engine takes half a minute to say it.
const enginesFile = "engines.json"

// keeper remembers it in the study's directory, for all of its machines.
type keeper struct {
	mu      sync.Mutex
	dir     string // "" for none
	perflab string // its version, which decides what is read of a help
	kept    map[string]engine.Help
}

// keptEngines is the content of enginesFile.
type keptEngines struct {
	Perflab string                 `json:"perflab"`
	Engines map[string]engine.Help `json:"engines"`
}

// said is what an engine said before, in this part of the study or in an earlier one.
func (k *keeper) said(engineName string) (engine.Help, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.recall()
	return k.kept[engineName], err
}

// recall reads what the engines said in an earlier part of the study, once.
func (k *keeper) recall() error {
	if k.kept != nil || k.dir == "" {
		return nil
	}
	k.kept = map[string]engine.Help{}
	path := filepath.Join(k.dir, enginesFile)
	var file keptEngines
	switch err := rundir.ReadJSON(path, &file); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: remove %s, and the engines are asked again", err, path)
	}
	if file.Perflab == k.perflab && file.Engines != nil {
		k.kept = file.Engines
	}
	return nil
}

// keep writes down what an engine said. One that tells no version is asked each time.
func (k *keeper) keep(h engine.Help) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == "" || h.Engine == "" || h.Version == "" || k.kept[h.Engine].Version == h.Version {
		return nil
	}
	k.kept[h.Engine] = h
	return rundir.WriteJSON(filepath.Join(k.dir, enginesFile), keptEngines{k.perflab, k.kept})
}
