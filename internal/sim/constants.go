package sim

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// constantsJSON holds every constant of the simulator with its meaning, prior
// and source; nothing of the kind stands in the code. What was fitted to runs
// is in calibrationJSON, which package calib makes.
var (
	//go:embed constants.json
	constantsJSON []byte
	//go:embed calibration.json
	calibrationJSON []byte
)

// Constant is one number of the step model, before any run is seen.
type Constant struct {
	Symbol  string  `json:"symbol"`
	Unit    string  `json:"unit"`
	Prior   float64 `json:"prior"`
	Spread  float64 `json:"spread"` // standard deviation of what it is elsewhere; 0: never fitted
	Of      string  `json:"of"`     // what it belongs to: device, format (a device's, per weight format) or engine (on a device)
	Meaning string  `json:"meaning"`
	Source  string  `json:"source"`
}

// Set puts values in the place of priors for what it names. The accelerator's
// name is a prefix (a100-sxm is both sizes); an empty selector matches
// everything.
type Set struct {
	Accelerator string             `json:"accelerator,omitempty"`
	Format      arch.Format        `json:"format,omitempty"`
	Engine      string             `json:"engine,omitempty"`
	Values      map[string]float64 `json:"values"`
	Spread      map[string]float64 `json:"spread,omitempty"` // relative standard deviation of a fitted value
	Source      string             `json:"source,omitempty"`
}

// matches says whether the set speaks of an engine on an accelerator with
// weights in a format. A set of fp8 speaks of fp8-block too.
func (s *Set) matches(engine, accelerator string, f arch.Format) bool {
	return strings.HasPrefix(accelerator, s.Accelerator) && (s.Engine == "" || s.Engine == engine) &&
		(s.Format == "" || s.Format == f || s.Format == arch.FP8 && f == arch.FP8Block)
}

// Constants are the numbers of the step model. They do not change.
type Constants struct {
	known map[string]Constant
	sets  []Set // the later wins
}

// Priors are the constants before any run is seen.
var Priors = sync.OnceValue(func() *Constants {
	var t struct {
		Constants map[string]Constant `json:"constants"`
		Sets      []Set               `json:"sets"`
	}
	dec := json.NewDecoder(bytes.NewReader(constantsJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		panic(fmt.Sprintf("sim: embedded constants.json: %v", err))
	}
	return &Constants{t.Constants, t.Sets}
})

// Shipped is the calibration file that is part of the program.
func Shipped() []byte { return calibrationJSON }

// Default are the priors with the shipped calibration over them.
var Default = sync.OnceValue(func() *Constants {
	var t struct {
		Sets []Set `json:"sets"`
	}
	if err := json.Unmarshal(calibrationJSON, &t); err != nil {
		panic(fmt.Sprintf("sim: embedded calibration.json: %v", err))
	}
	c, err := Priors().With(t.Sets...)
	if err != nil {
		panic("sim: embedded calibration.json: " + err.Error())
	}
	return c
})

// With is c with further sets over it.
func (c *Constants) With(sets ...Set) (*Constants, error) {
	for _, s := range sets {
		for name, v := range s.Values {
			if _, ok := c.known[name]; !ok {
				return nil, fmt.Errorf("no constant is called %q: known are %s", name, strings.Join(c.Names(), ", "))
			}
			if !(v >= 0) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("constant %s cannot be %v", name, v)
			}
		}
	}
	return &Constants{c.known, append(slices.Clip(c.sets), sets...)}, nil
}

// Names lists the constants.
func (c *Constants) Names() []string { return slices.Sorted(maps.Keys(c.known)) }

// About is what is known of a constant before any run is seen.
func (c *Constants) About(name string) (Constant, bool) {
	k, ok := c.known[name]
	return k, ok
}

// Value is a constant for an engine on an accelerator and weights in a format.
func (c *Constants) Value(engine, accelerator string, f arch.Format, name string) float64 {
	k, ok := c.known[name]
	if !ok {
		panic("sim: no constant " + name)
	}
	v := k.Prior
	for i := range c.sets {
		if s := &c.sets[i]; s.matches(engine, accelerator, f) {
			if x, ok := s.Values[name]; ok {
				v = x
			}
		}
	}
	return v
}

// Spread is the relative standard deviation of a constant: that of its fit
// where one tells it, else that of its prior.
func (c *Constants) Spread(engine, accelerator string, f arch.Format, name string) float64 {
	k, ok := c.known[name]
	if !ok || k.Prior == 0 {
		return 0
	}
	prior := k.Spread / k.Prior
	out := prior
	for i := range c.sets {
		s := &c.sets[i]
		if _, sets := s.Values[name]; !sets || !s.matches(engine, accelerator, f) {
			continue
		}
		if out, ok = s.Spread[name]; !ok {
			out = prior
		}
	}
	return out
}

// constants are the numbers that hold for one configuration.
type constants struct {
	*Constants
	engine      string
	accelerator string
	format      arch.Format
}

func constantsFor(c *Constants, cfg engine.Config) constants {
	if c == nil {
		c = Default()
	}
	return constants{c, cfg.Engine, cfg.GPU.Name, cfg.Model.Kernels()}
}

// get looks a constant up for the checkpoint's own format.
func (k constants) get(name string) float64 { return k.of(k.format, name) }

// of looks a constant up for weights in a format.
func (k constants) of(f arch.Format, name string) float64 {
	return k.Value(k.engine, k.accelerator, f, name)
}

// seconds turns a step's length into a duration, to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
