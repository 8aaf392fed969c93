package source

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/earlier"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/input"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// Earlier reads the earlier studies that a study names, and weighs them by how alike they are
// to it. One that it must not learn from is an error, with its place in the study file.
func Earlier(s *study.Study) ([]outcome.Earlier, error) {
	if len(s.Earlier) == 0 {
		return nil, nil
	}
	t, err := s.Learner()
	if err != nil {
		return nil, err
	}
	var sources []earlier.Source
	var errs []error
	for i, path := range s.Earlier {
		src, err := earlierSource(path)
		if err == nil {
			err = t.Refuse(src)
		}
		if err != nil {
			errs = append(errs, &ArgumentError{s.EarlierError(i, err)})
			continue
		}
		src.Path = path
		sources = append(sources, src)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return earlier.Weigh(t, sources), nil
}

// Learn is Earlier for a study that is only looked at: its search then takes them, too.
func Learn(s *study.Study) ([]outcome.Earlier, error) {
	facts, err := Earlier(s)
	s.Known = earlier.Known(facts)
	return facts, err
}

// earlierSource reads a study's directory, or whatever else has results.
func earlierSource(path string) (earlier.Source, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return earlier.Source{}, fmt.Errorf("there is no %s", path)
	} else if err != nil {
		return earlier.Source{}, err
	}
	if rundir.IsStudy(path) {
		return earlierStudy(path)
	}
	return earlierResults(path)
}

// keptStudyFile is the copy of its file that a study keeps.
const keptStudyFile = "study.yaml"

// earlierStudy reads the trials of a study. What they were measured on and under is in the
// copy of its file.
func earlierStudy(dir string) (earlier.Source, error) {
	s, err := rundir.OpenStudy(dir)
	if err != nil {
		return earlier.Source{}, err
	}
	data, err := input.File(filepath.Join(dir, keptStudyFile), study.MostStudy)
	if err != nil {
		return earlier.Source{}, fmt.Errorf("read the copy of its file, which says what it was measured on: %w", err)
	}
	f, err := study.Kept(data)
	if err != nil {
		return earlier.Source{}, fmt.Errorf("read %s: %w", filepath.Join(dir, keptStudyFile), err)
	}
	src := earlier.Source{Name: s.Name, Simulated: s.Simulated}
	if s.Predicted {
		return src, errors.New("it is a prediction: nothing was measured that this study's own predictions do not say")
	}
	loads := map[string]earlier.Load{}
	for _, w := range f.Workloads {
		loads[w.Name] = study.LoadOf(w)
	}
	var base tune.Config
	if s.Baseline != nil {
		for _, t := range s.Trials {
			if t.ID == s.Baseline.Trial {
				base = t.Config
			}
		}
	}
	gpu := ""
	if a, err := arch.LookupAccelerator(f.Hardware.GPU); err == nil {
		gpu = a.Name
	}
	strange := 0 // results of a load that the file does not have
	for _, t := range s.Trials {
		for _, r := range t.Runs {
			if t.Status != tune.Measured || r.Summary.Partial || r.Summary.Verdict.Status == result.Voided {
				continue
			}
			load, known := loads[r.Workload]
			if !known {
				strange++
				continue
			}
			figures := r.Summary.Judged()
			load.Input, load.Output = meanLength(figures, "total_input_tokens"), meanLength(figures, "total_output_tokens")
			src.Results = append(src.Results, earlier.Result{
				Config: t.Config, Version: t.Version, GPU: gpu, GPUs: f.Hardware.GPUs, Load: load, Share: t.Share,
				Baseline: base != nil && maps.Equal(t.Config, base), Figures: figures,
			})
		}
	}
	if strange > 0 {
		src.Unused = append(src.Unused, fmt.Sprintf("Results not used, as the copy of its file does not have their workload: %d", strange))
	}
	return src, nil
}

// meanLength is the tokens of a request, on average; 0 where that is not known.
func meanLength(figures map[string]float64, total string) float64 {
	if n := figures["completed"]; n > 0 {
		return figures[total] / n
	}
	return 0
}

// earlierResults reads runs and other clients' results as observations: each with its command,
// its hardware and its load, which are what likeness and configuration are made of.
func earlierResults(path string) (earlier.Source, error) {
	o := &forecast.Observer{Known: forecast.Known{Simulated: true}} // whether that is right is not theirs to say
	Observe(o, []string{path}, nil)
	src := earlier.Source{Name: filepath.Base(filepath.Clean(path)), Simulated: o.Simulated}
	if len(o.Observations) == 0 {
		why := "it has no result"
		if len(o.Omitted) > 0 {
			why = withoutFlags(o.Omitted[0].Why)
		}
		return src, fmt.Errorf("no configuration with its figures was found: %s", why)
	}
	for i := range o.Observations {
		src.Results = append(src.Results, observed(&o.Observations[i]))
	}
	reasons := map[string]int{}
	for _, x := range o.Omitted {
		if !slices.ContainsFunc(o.Observations, func(k calib.Observation) bool { return k.ID == x.Place }) { // else a figure of it
			reasons[withoutFlags(x.Why)]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		text := fmt.Sprintf("%d further results are not used: %s", reasons[why], why)
		if reasons[why] == 1 {
			text = "1 further result is not used: " + why
		}
		src.Unused = append(src.Unused, text)
	}
	return src, nil
}

// withoutFlags is why something gives no observation without the flag that would mend it
// elsewhere.
func withoutFlags(why string) string {
	why, _, _ = strings.Cut(why, ": give ")
	return why
}

// observed is an observation as a result of an earlier study.
func observed(x *calib.Observation) earlier.Result {
	r := earlier.Result{
		Version: x.Version, GPU: x.GPU, GPUs: x.GPUs * max(1, x.Replicas), Figures: x.Figures,
		Load: earlier.Load{Input: x.Load.Input.Mean, Output: x.Load.Output.Mean, Rate: x.Load.Rate, Limit: x.Load.Concurrency},
	}
	cmd, err := engine.ParseText(x.Command)
	if err != nil {
		return r
	}
	r.Config = tune.Config{"engine": cmd.Engine, "model": cmd.Model}
	maps.Copy(r.Config, cmd.Params)
	if further := (engine.Command{Engine: cmd.Engine, Extra: cmd.Extra, Unread: cmd.Unread}); len(further.Unmodelled()) > 0 {
		r.Further = strings.Join(append(slices.Clone(cmd.Extra), cmd.Unread...), " ")
	}
	return r
}
