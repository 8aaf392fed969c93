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
	Of      string  `json:"of"`     // what it belongs to: device, format (a device's, per weight format and engine), engine (on a device), family (of models, with an engine), model (the same on a device), site, or installation (an engine's at a site)
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
	Generation  string             `json:"generation,omitempty"` // of the engine's versions, see engine.Config
	Family      string             `json:"family,omitempty"`     // of models, see arch.Model.Family
	Values      map[string]float64 `json:"values"`
	Spread      map[string]float64 `json:"spread,omitempty"` // relative standard deviation of a fitted value
	Source      string             `json:"source,omitempty"`
}

// Subject is what a constant is asked of: an engine on an accelerator, with weights in a
// format, of a family of models.
type Subject struct {
	Engine, Generation string
	Accelerator        string
	Format             arch.Format
	Family             string
}

// SubjectOf is a configuration as the subject of constants.
func SubjectOf(cfg engine.Config) Subject {
	return Subject{cfg.Engine, cfg.Generation, cfg.GPU.Name, cfg.Model.Kernels(), cfg.Model.Family()}
}

// matches says whether the set speaks of the subject. A set of fp8 speaks of fp8-block too.
func (s *Set) matches(of Subject) bool {
	return strings.HasPrefix(of.Accelerator, s.Accelerator) && (s.Engine == "" || s.Engine == of.Engine) &&
		(s.Generation == "" || s.Generation == of.Generation) && (s.Family == "" || s.Family == of.Family) &&
		(s.Format == "" || s.Format == of.Format || s.Format == arch.FP8 && of.Format == arch.FP8Block)
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

// Value is a constant of a subject.
func (c *Constants) Value(of Subject, name string) float64 { return c.last(c.speakOf(of), name) }

// last is a constant as the last of some sets has it, else its prior.
func (c *Constants) last(sets []*Set, name string) float64 {
	k, ok := c.known[name]
	if !ok {
		panic("sim: no constant " + name)
	}
	for i := len(sets) - 1; i >= 0; i-- {
		if v, ok := sets[i].Values[name]; ok {
			return v
		}
	}
	return k.Prior
}

// Spread is the relative standard deviation of a constant: that of its fit
// where one tells it, else that of its prior.
func (c *Constants) Spread(of Subject, name string) float64 {
	k, ok := c.known[name]
	if !ok || k.Prior == 0 {
		return 0
	}
	for _, s := range slices.Backward(c.speakOf(of)) {
		if _, sets := s.Values[name]; sets {
			if fitted, ok := s.Spread[name]; ok {
				return fitted
			}
			break
		}
	}
	return k.Spread / k.Prior
}

// constants are the numbers that hold for one configuration.
type constants struct {
	*Constants
	subject   Subject
	own, wide []*Set // that speak of it, and of it with weights in 16 bit
}

func constantsFor(c *Constants, cfg engine.Config) constants {
	if c == nil {
		c = Default()
	}
	k := constants{Constants: c, subject: SubjectOf(cfg)}
	wide := k.subject
	wide.Format = arch.BF16
	k.own, k.wide = c.speakOf(k.subject), c.speakOf(wide)
	return k
}

// speakOf are the sets that match a subject. Those of its very generation come last and win,
// as one that names none may be of another.
func (c *Constants) speakOf(of Subject) []*Set {
	var out []*Set
	for _, generation := range []bool{false, true} {
		for i := range c.sets {
			if s := &c.sets[i]; (s.Generation != "") == generation && s.matches(of) {
				out = append(out, s)
			}
		}
	}
	return out
}

// get looks a constant up for the checkpoint's own format.
func (k constants) get(name string) float64 { return k.last(k.own, name) }

// bf16 looks a constant up for weights in 16 bit.
func (k constants) bf16(name string) float64 { return k.last(k.wide, name) }

// FrontEnd is the time that the front end of a replica spends on a request.
func (c *Constants) FrontEnd(cfg engine.Config) time.Duration { return constantsFor(c, cfg).frontEnd() }

func (k constants) frontEnd() time.Duration {
	return seconds(1e-3 * k.host() * k.get("f_req") * k.get("f_family"))
}

// host is what times of the engine on this site's hosts are over those elsewhere.
func (k constants) host() float64 { return k.get("site_engine") * k.get("site_host") }

// seconds turns a step's length into a duration, to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
