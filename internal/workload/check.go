package workload

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"

	"perflab/internal/stat"
	"perflab/internal/workload/picture"
)

// Arrivals returns the names that Spec.Arrival takes.
func Arrivals() []string { return []string{"inf", "constant", "poisson", "gamma", "trace"} }

// Defaults returns the spec with every default that applies written out, so
// that it says what will run. It changes nothing that is set, and filling
// twice is filling once.
//
// Arrival: a finite rate or a ramp is Poisson, or gamma with a burstiness
// other than 1; a trace without a rate keeps its own times; the rest is all
// at once. Datasets whose prompts are made of random words ignore EOS, as
// `vllm bench serve` forces for random: such a prompt has no natural answer.
func (s Spec) Defaults() Spec {
	number := s.NumPrompts
	s.Dataset = cmp.Or(s.Dataset, Datasets()[0])
	d := s.row()
	for _, p := range d.params {
		if v := s.value(p.key); p.standard != 0 && v.IsZero() {
			v.SetInt(int64(p.standard))
		}
	}
	if d.fill != nil {
		d.fill(&s)
	}
	if s.timed() {
		s.NumPrompts = number // time bounds the run
	}
	if len(s.LoraModules) > 0 {
		s.LoraAssignment = cmp.Or(s.LoraAssignment, "random")
	}
	if s.RandomImages > 0 {
		s.RandomImageSize = cmp.Or(s.RandomImageSize, "512x512")
	}
	if s.Arrival == "" {
		s.Arrival = defaultArrival(s)
	}
	switch s.Arrival {
	case "inf":
		s.Rate = cmp.Or(s.Rate, Rate(math.Inf(1)))
	case "poisson", "gamma":
		s.Burstiness = cmp.Or(s.Burstiness, 1)
	case "trace":
		s.Speed = cmp.Or(s.Speed, 1)
	}
	return s
}

func defaultArrival(s Spec) string {
	switch {
	case s.Rate.Inf() && s.RampStrategy == "" && s.Steps == "":
		if s.Rate == 0 && s.row().trace {
			return "trace"
		}
		return "inf"
	case s.Burstiness == 0 || s.Burstiness == 1:
		return "poisson"
	}
	return "gamma"
}

// Validate returns every fault of the spec, a field.Error each with the field's
// JSON key as its path. A field that does not apply to the dataset or the
// arrival is a fault: ignored, it would make the run something else than what
// was asked.
func (s Spec) Validate() error {
	var f faults
	d := s.Defaults()
	f.oneOf("dataset_name", d.Dataset, Datasets()...)
	if len(f) > 0 {
		return f.err()
	}
	f.oneOf("arrival", d.Arrival, Arrivals()...)
	if len(f) > 0 {
		return f.err()
	}
	checkDataset(s, d, &f)
	checkArrival(s, d, &f)
	checkModelsAndImages(s, d, &f)
	checkRanges(s, &f)
	return f.err()
}

// checkDataset names what belongs to another dataset and what is wrong with the
// chosen one.
func checkDataset(s, d Spec, f *faults) {
	row := d.row()
	switch {
	case s.Path == "" && row.open == nil:
		f.add("dataset_name", "%s needs [dataset_path]"+row.hint, d.Dataset)
	case s.Path != "" && !row.takesPath():
		f.add("dataset_path", "applies to [dataset_name] %s, not %s", either(namesOf(dataset.takesPath)), d.Dataset)
	}
	checkSessionHeader(s.SessionHeader, f)
	before := len(*f)
	for _, p := range Params() {
		v := s.value(p.Key)
		own, ok := row.param(p.Key)
		switch {
		case v.IsZero():
		case !ok:
			of := namesOf(func(d dataset) bool { _, ok := d.param(p.Key); return ok })
			f.add(p.Key, "applies to [dataset_name] %s, not %s", either(of), d.Dataset)
		case own.minusOne && v.Int() == -1:
		case own.minusOne && v.Int() < 0:
			f.add(p.Key, "%d is neither a number of tokens nor -1", v.Int())
		case v.Kind() == reflect.Int:
			f.count(p.Key, int(v.Int()), cmp.Or(own.limit, maxTokens))
		}
	}
	if row.check != nil && len(*f) == before && (s.Path != "" || row.open != nil) { // else its numbers make no sense
		row.check(s, d, f)
	}
}

// checkSessionHeader refuses a name that HTTP cannot carry, or that means something else.
func checkSessionHeader(name string, f *faults) {
	allowed := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	taken := []string{"accept", "authorization", "connection", "content-length", "content-type", "cookie", "host", "keep-alive", "te", "trailer",
		"transfer-encoding", "upgrade", "user-agent", "x-api-key", "anthropic-version"}
	switch {
	case strings.ContainsFunc(name, func(c rune) bool { return !allowed(c) }):
		f.add("session_header", "%q is no name of a header: use letters, digits and -, as in X-Session-ID", name)
	case slices.Contains(taken, strings.ToLower(name)):
		f.add("session_header", "%s means something else to a server: choose another name, such as X-Session-ID", name)
	}
}

// checkArrival names fields that belong to another arrival, and what the
// chosen one lacks.
func checkArrival(s, d Spec, f *faults) {
	paced := d.Arrival == "constant" || d.Arrival == "poisson" || d.Arrival == "gamma"
	ramped := s.RampStrategy != ""
	switch {
	case !s.Rate.Inf() && !paced:
		f.add("request_rate", "applies to [arrival] constant, poisson or gamma, not %s", d.Arrival)
	case !s.Rate.Inf() && ramped:
		f.add("request_rate", "does not apply with [ramp_up_strategy], which takes [ramp_up_start_rps] and [ramp_up_end_rps]")
	case s.Rate.Inf() && paced && !ramped && s.Steps == "":
		f.add("arrival", "%s needs a finite [request_rate]", d.Arrival)
	case s.Rate != 0 && d.Arrival == "trace":
		f.add("request_rate", "inf applies to [arrival] inf, not trace")
	}
	switch {
	case s.Burstiness == 0 || d.Arrival == "gamma":
	case d.Arrival != "poisson":
		f.add("burstiness", "applies to [arrival] gamma, not %s", d.Arrival)
	case s.Burstiness != 1:
		f.add("burstiness", "%g applies to [arrival] gamma, not poisson (whose burstiness is 1)", s.Burstiness)
	}
	if s.Speed != 0 && d.Arrival != "trace" {
		f.add("speed", "applies to [arrival] trace, not %s", d.Arrival)
	}
	if d.Arrival == "trace" && !d.row().trace {
		f.add("arrival", "trace applies to [dataset_name] %s, not %s", either(namesOf(func(d dataset) bool { return d.trace })), d.Dataset)
	}
	checkRamp(s, d, paced, f)
	checkSteps(s, d, paced, f)
	checkDuration(s, d, f)
	checkPrecision(s, d, f)
}

func checkRamp(s, d Spec, paced bool, f *faults) {
	switch s.RampStrategy {
	case "":
		if s.RampStart != 0 {
			f.add("ramp_up_start_rps", "applies with [ramp_up_strategy] linear or exponential only")
		}
		if s.RampEnd != 0 {
			f.add("ramp_up_end_rps", "applies with [ramp_up_strategy] linear or exponential only")
		}
	case "linear", "exponential":
		if !paced {
			f.add("ramp_up_strategy", "applies to [arrival] constant, poisson or gamma, not %s", d.Arrival)
		}
		if !(s.RampStart > 0 && s.RampStart < s.RampEnd) || math.IsInf(s.RampEnd, 1) {
			f.add("ramp_up_strategy", "%s needs 0 < [ramp_up_start_rps] < [ramp_up_end_rps], not %g and %g",
				s.RampStrategy, s.RampStart, s.RampEnd)
		}
	default:
		f.oneOf("ramp_up_strategy", s.RampStrategy, "linear", "exponential")
	}
}

func checkSteps(s, d Spec, paced bool, f *faults) {
	if s.Steps != "" {
		switch {
		case !paced:
			f.add("steps", "applies to [arrival] constant, poisson or gamma, not %s", d.Arrival)
		case !s.Rate.Inf():
			f.add("request_rate", "does not apply with [steps], which has the rates")
		}
		if s.RampStrategy != "" {
			f.add("ramp_up_strategy", "does not apply with [steps], which has the rates")
		}
		if s.Duration != "" {
			f.add("duration", "does not apply with [steps], which has the times")
		}
		_, err := parseSteps(s.Steps)
		f.join(err)
	}
}

func checkDuration(s, d Spec, f *faults) {
	if s.Duration == "" {
		return
	}
	if _, err := s.Duration.Duration(); err != nil {
		f.add("duration", "%v", err)
	}
	if d.Arrival == "inf" && s.MaxConcurrency == 0 {
		f.add("duration", "needs [request_rate], a ramp, a trace or [max_concurrency]: without any of them all requests are due at once")
	}
	if endless(d) && d.row().trace {
		f.add("duration", "in a closed loop takes requests without end, and a trace is not repeated: give [num_prompts] or [request_rate] as well")
	}
	if endless(d) && d.RandomRNG != "" {
		f.add("duration", "in a closed loop takes requests without end, and [random_rng] %s draws a number of them at once: give [num_prompts] as well", d.RandomRNG)
	}
}

// checkPrecision names what keeps a run from ending when its figure is known well enough.
func checkPrecision(s, d Spec, f *faults) {
	if s.UntilPrecision == "" {
		if s.UntilMetric != "" {
			f.add("until_metric", "applies with [until_precision] only")
		}
		return
	}
	v, err := s.UntilPrecision.Value()
	switch least := stat.WatchEnds(s.MaxConcurrency); {
	case err != nil:
		f.add("until_precision", "%v", err)
	case v == 0:
		f.add("until_precision", "is 0: give how far the figure may be off to each side, such as 2%%")
	case d.row().sessions:
		f.add("until_precision", "does not apply to [dataset_name] %s: its turns come at times of their own, so there is no steady state to look at", d.Dataset)
	case s.RampStrategy != "" || s.Steps != "" || d.Arrival == "trace":
		f.add("until_precision", "needs a load that stays the same: give [max_concurrency] or one [request_rate], and no ramp, steps or times of a trace")
	case d.Arrival == "inf" && s.MaxConcurrency == 0:
		f.add("until_precision", "needs a steady state, which a burst has not: give [max_concurrency] or [request_rate]")
	case d.NumPrompts > 0 && d.NumPrompts < least:
		f.add("until_precision", "cannot end a run of %d requests: with %d in flight it takes at least %d to tell how the figure varies, so raise [num_prompts] or leave [until_precision] out", d.NumPrompts, max(1, s.MaxConcurrency), least)
	}
}

// checkModelsAndImages names what is wrong about adapters and images.
func checkModelsAndImages(s, d Spec, f *faults) {
	if s.LoraAssignment != "" && len(s.LoraModules) == 0 {
		f.add("lora_assignment", "applies with [lora_modules] only")
	} else if d.LoraAssignment != "" {
		f.oneOf("lora_assignment", d.LoraAssignment, "random", "round-robin")
	}
	if slices.Contains(s.LoraModules, "") {
		f.add("lora_modules", "%s has an empty name", strings.Join(s.LoraModules, ","))
	}
	if s.RandomImageSize != "" && s.RandomImages == 0 {
		f.add("random_image_size", "applies with [random_images] only")
	} else {
		if _, err := picture.ParseSizes(s.RandomImageSize); err != nil {
			f.add("random_image_size", "%v", err)
		}
	}
}

// checkRanges names values outside their range, of fields that every dataset has.
func checkRanges(s Spec, f *faults) {
	most := maxRequests
	if drawnLong(s.Defaults()) {
		most = maxLong
	}
	f.count("num_prompts", s.NumPrompts, most)
	f.count("max_concurrency", s.MaxConcurrency, maxRequests)
	if !(s.Rate >= 0) {
		f.add("request_rate", "%g must be above 0 or inf", float64(s.Rate))
	}
	f.finite("burstiness", s.Burstiness)
	f.finite("speed", s.Speed)
	if s.Burstiness > 0 && s.Burstiness < leastBurstiness {
		f.add("burstiness", "%g must be at least %g: below it nearly all gaps are 0", s.Burstiness, leastBurstiness)
	}
}

// Sized returns the spec with n requests at least, as few as its dataset comes
// in: the same number for each prefix, or whole groups.
func (s Spec) Sized(n int) Spec {
	s = s.Defaults()
	s.NumPrompts = n
	if d := s.row(); d.size != nil && !s.timed() {
		d.size(&s, n)
	}
	return s
}
