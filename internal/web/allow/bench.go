package allow

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"perflab/internal/field"
)

// withheld is a flag that a launch has of its own, or that only somebody at the machine may use.
func withheld(why string) rule {
	return func(_ Checker, at, _ string) error { return field.Errorf(at, "%s", why) }
}

// benchRules has a row for every flag of perflab bench, by its name without dashes.
func benchRules() map[string]rule {
	rules := map[string]rule{}
	for key, r := range workloadRules() {
		rules[strings.ReplaceAll(strings.TrimSuffix(key, "[]"), "_", "-")] = r
	}
	maps.Copy(rules, same(harmless, `port backend extra-body temperature top-p top-k min-p frequency-penalty presence-penalty repetition-penalty
		insecure traceparent ready-check-timeout-sec timeout-first-token timeout-idle timeout-total cache num-warmups profile c-max c-min percentile-metrics metric-percentiles
		goodput slo max-error-rate compat telemetry telemetry-interval telemetry-gpus price-per-hour gpus
		sweep sweep-points find-max find-max-from find-max-to find-max-precision find-max-requests find-max-seconds repeat repeat-same-seed block metadata fleet`))
	rules["base-url"], rules["host"], rules["endpoint"] = baseURLs, host, endpoint
	rules["kube-service"], rules["kube-context"] = podSetting("service"), podSetting("context")
	rules["model"], rules["served-model-name"] = nameOrFile, harmless
	for flag, why := range withheldFlags() {
		rules[flag] = withheld(why)
	}
	return rules
}

// withheldFlags are those that no launch has, with the reason.
func withheldFlags() map[string]string {
	out := map[string]string{
		"out":          "is given by the queue",
		"header":       "may hold a secret, which every user of the machine could read: the API key comes from OPENAI_API_KEY in the environment of perflab serve",
		"metrics-addr": "would open a port: the server shows the run while it lasts",
		"from":         "only prints a command: run that",
		"otlp":         "sends spans to where the launch says: perflab export --to otlp makes them of the run directory",
		"push":         "sends the run to a laboratory: the launch is in this one already",
		"help":         "runs nothing",
	}
	for flag := range strings.FieldsSeq("html parquet save-result append-result save-detailed result-dir result-filename label") {
		out[flag] = "is about a file that the launch would write: its run directory has all of it, from which perflab report and export make files"
	}
	for flag := range strings.FieldsSeq("hub hub-seed hub-ca") {
		out[flag] = "names keys of a fleet: a launch has that of this server, where it has one (perflab serve --fleet)"
	}
	return out
}

// BenchFlags are the flags of perflab bench that somebody has decided about, and whether a launch
// may have them at all.
func BenchFlags() map[string]bool {
	out, no := map[string]bool{}, withheldFlags()
	for name := range benchRules() {
		out[name] = no[name] == ""
	}
	return out
}

// Bench says what of a bench is not allowed, or is no flag. It opens nothing that the flags name.
func (c Checker) Bench(flags map[string][]string) error {
	rules := benchRules()
	var errs []error
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		r, known := rules[flag]
		at := strings.ReplaceAll(flag, "-", "_") // paths are spelled as in files: see console.FlagOf
		if !known {
			errs = append(errs, field.Errorf(at, "is no flag of perflab bench that can be launched from a browser"))
			continue
		}
		for _, v := range flags[flag] {
			if strings.ContainsRune(v, 0) {
				errs = append(errs, field.Errorf(at, "has a byte that no command line can have"))
			} else if r != nil {
				errs = append(errs, r(c, at, v))
			}
		}
	}
	return errors.Join(errs...)
}

// baseURLs are addresses by commas.
func baseURLs(c Checker, at, value string) error {
	var errs []error
	for part := range strings.SplitSeq(value, ",") {
		errs = append(errs, baseURL(c, at, part))
	}
	return errors.Join(errs...)
}

// endpoint is a path on a server. What does not begin with a slash would change the address that it
// is put behind.
func endpoint(_ Checker, at, value string) error {
	if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, "@\\ ") {
		return field.Errorf(at, "%.200q is no path of an API: write it as /v1/completions", value)
	}
	return nil
}
