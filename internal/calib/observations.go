package calib

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
)

// Limits of what is replayed: a number that was misread must not take all memory.
const (
	MostTokens   = 20_000_000 // output tokens of a load: the figures need the instant of each, some 100 bytes
	mostReplicas = 10_000     // more than any machine room has; each takes a few KB
	widestSigma  = 10         // of a logarithm: lengths of a factor of 20,000 around their middle
	longestLoad  = 365 * 24 * time.Hour
)

// ReadObservations reads a JSON array of observations, strictly: unknown keys,
// repeated ids and loads or figures that cannot be are errors. It resolves none.
func ReadObservations(data []byte) ([]Observation, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var obs []Observation
	if err := dec.Decode(&obs); err != nil {
		return nil, fmt.Errorf("read observations: %w", located(data, dec, err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("read observations: something follows the array")
	}
	seen := map[string]bool{}
	for i := range obs {
		o := &obs[i]
		switch err := o.validate(); {
		case o.ID == "":
			return nil, fmt.Errorf("observation %d has no id: name it, so that messages can", i+1)
		case seen[o.ID]:
			return nil, fmt.Errorf("observation %s stands twice: give each run an id of its own", o.ID)
		case err != nil:
			return nil, fmt.Errorf("observation %s: %w", o.ID, err)
		}
		seen[o.ID] = true
	}
	return obs, nil
}

// located adds the line on which reading ended.
func located(data []byte, dec *json.Decoder, err error) error {
	at := dec.InputOffset()
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		at = int64(len(data))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(max(at, 0), int64(len(data)))], []byte("\n")), err)
}

// validate checks what does not need the engine's catalogue.
func (o *Observation) validate() error {
	switch {
	case o.Study == "":
		return errors.New("study is missing: runs of one study are held out together")
	case o.Workload == "":
		return errors.New("workload is missing: runs of one workload are held out together")
	case o.Command == "":
		return errors.New("command is missing: give the serving command of one replica")
	case o.GPU == "":
		return errors.New("gpu is missing: name an accelerator, such as h100-sxm")
	case o.GPUs < 1:
		return fmt.Errorf("gpus is %d: give the number of one replica's machine", o.GPUs)
	case len(o.Figures) == 0:
		return errors.New("figures are missing: give what was measured, such as total_token_throughput")
	}
	for name, v := range o.Figures {
		if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("figure %s is %v: leave out what was not measured", name, v)
		}
	}
	return o.Load.Validate()
}

// Validate says what is wrong with a load.
func (l Load) Validate() error {
	switch {
	case l.Requests < 1:
		return fmt.Errorf("load: requests is %d: give the number that was sent", l.Requests)
	case l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0):
		return fmt.Errorf("load: rate is %v: give requests per second, or leave it out where all were sent at once", l.Rate)
	case l.Rate > 0 && l.Arrival != "constant" && l.Arrival != "poisson":
		return fmt.Errorf("load: arrival is %q: write constant or poisson", l.Arrival)
	case l.Rate == 0 && l.Arrival != "":
		return fmt.Errorf("load: arrival is %q without a rate: leave it out, or give the rate", l.Arrival)
	case l.Cached < 0 || l.Cached > l.Requests:
		return fmt.Errorf("load: cached is %d of %d requests", l.Cached, l.Requests)
	case l.Concurrency < 0:
		return fmt.Errorf("load: concurrency is %d: leave it out where there was no limit", l.Concurrency)
	case l.Exact != nil && len(l.Exact) != l.Requests:
		return fmt.Errorf("load: %d requests are listed of %d", len(l.Exact), l.Requests)
	}
	if err := l.Input.validate(); err != nil {
		return fmt.Errorf("load: input: %w", err)
	}
	if err := l.Output.validate(); err != nil {
		return fmt.Errorf("load: output: %w", err)
	}
	return l.validateSize()
}

// validateSize says what makes a load too large to be replayed.
func (l Load) validateSize() error {
	f := l.facts()
	switch n := float64(f.requests) * f.output; {
	case n > MostTokens:
		return fmt.Errorf("load: %d requests have %.4g output tokens, and a replay keeps the instant of each: %d are the limit", f.requests, n, MostTokens)
	case float64(l.Cached)*l.Input.Mean > MostTokens:
		return fmt.Errorf("load: %d cached prompts have %.4g tokens: %d are the limit", l.Cached, float64(l.Cached)*l.Input.Mean, MostTokens)
	case l.Rate > 0 && float64(l.Requests)/l.Rate > longestLoad.Seconds():
		return fmt.Errorf("load: %d requests at %v a second take longer than a year", l.Requests, l.Rate)
	}
	return nil
}

func (l Lengths) validate() error {
	switch {
	case !(l.Mean >= 1) || math.IsInf(l.Mean, 0):
		return fmt.Errorf("mean is %v: give tokens per request", l.Mean)
	case !(l.Sigma >= 0) || l.Sigma > widestSigma:
		return fmt.Errorf("sigma is %v: 0 is one length for all, 1 a wide spread, %d the limit", l.Sigma, widestSigma)
	case l.Max < 0 || l.Max > 0 && float64(l.Max) < l.Mean:
		return fmt.Errorf("max is %d, the mean %v", l.Max, l.Mean)
	case l.Sigma > 0 && l.Mean <= minLength:
		return fmt.Errorf("mean is %v: lengths are drawn from %d tokens on", l.Mean, minLength)
	}
	return nil
}

// Resolve fills in what the command means on its hardware. The model is one
// that arch knows; where Config.Model has a name already, as from a user's
// config.json, that model stays.
func (o *Observation) Resolve() error {
	switch {
	case o.Replicas < 0:
		return fmt.Errorf("replicas is %d: leave it out for one", o.Replicas)
	case o.Replicas > mostReplicas:
		return fmt.Errorf("replicas is %d: %d are the limit", o.Replicas, mostReplicas)
	}
	cmd, err := engine.ParseText(o.Command)
	if err != nil {
		return fmt.Errorf("command: %w", err)
	}
	if cmd.FilePath != "" {
		return fmt.Errorf("command: it reads a configuration file, %s, whose content is not recorded: what was configured is not known", cmd.FilePath)
	}
	if err := cmd.Modelled(); err != nil {
		return err
	}
	cmd.Version = o.Version
	model := o.Config.Model
	if model.Name == "" {
		if model, err = arch.LookupModel(cmd.Model); err != nil {
			return err
		}
	}
	gpu, err := arch.LookupAccelerator(o.GPU)
	if err != nil {
		return err
	}
	o.Config, err = cmd.Resolve(model, gpu, o.GPUs)
	return err
}
