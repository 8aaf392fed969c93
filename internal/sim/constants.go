package sim

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// constantsJSON holds every fitted or assumed number of the simulator with its
// meaning, prior and source; nothing of the kind stands in the code.
//
//go:embed constants.json
var constantsJSON []byte

type constantTable struct {
	Constants map[string]struct {
		Symbol  string  `json:"symbol"`
		Unit    string  `json:"unit"`
		Prior   float64 `json:"prior"`
		Spread  float64 `json:"spread"`
		Meaning string  `json:"meaning"`
		Source  string  `json:"source"`
	} `json:"constants"`
	Devices []constantSet `json:"devices"`
	Engines []constantSet `json:"engines"`
}

// constantSet overrides priors for one device and weight format, or for one
// engine and device. The accelerator's name is a prefix (a100-sxm is both
// sizes); an empty selector matches everything.
type constantSet struct {
	Accelerator string             `json:"accelerator"`
	Format      arch.Format        `json:"format"`
	Engine      string             `json:"engine"`
	Values      map[string]float64 `json:"values"`
	Source      string             `json:"source"`
}

func loadConstants() (*constantTable, error) {
	var t constantTable
	if err := json.Unmarshal(constantsJSON, &t); err != nil {
		return nil, fmt.Errorf("read the simulator's constants: %w", err)
	}
	return &t, nil
}

// constants are the numbers that hold for one configuration.
type constants struct {
	table       *constantTable
	engine      string
	accelerator string
	format      arch.Format
}

func constantsFor(cfg engine.Config) (*constants, error) {
	t, err := loadConstants()
	if err != nil {
		return nil, err
	}
	return &constants{t, cfg.Engine, cfg.GPU.Name, cfg.Model.Format}, nil
}

// get looks a constant up for the checkpoint's own format.
func (k *constants) get(name string) float64 { return k.of(k.format, name) }

// of looks a constant up: the prior, overridden by the device's value, that by
// the engine's; within a list the later and more specific set wins.
func (k *constants) of(f arch.Format, name string) float64 {
	c, ok := k.table.Constants[name]
	if !ok {
		panic("sim: no constant " + name)
	}
	v := c.Prior
	for _, sets := range [][]constantSet{k.table.Devices, k.table.Engines} {
		for _, s := range sets {
			if strings.HasPrefix(k.accelerator, s.Accelerator) && (s.Format == "" || s.Format == f) &&
				(s.Engine == "" || s.Engine == k.engine) {
				if x, ok := s.Values[name]; ok {
					v = x
				}
			}
		}
	}
	return v
}

// seconds turns a step's length into a duration, to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
