package translate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// number reads the number of a fact; where it is none, the command is refused.
func (d *draft) number(fact string) (float64, bool) {
	text, ok := d.facts[fact]
	if !ok {
		return 0, false
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
		return v, true
	}
	d.refuse(d.of(fact), "is no number: write the number itself")
	delete(d.facts, fact)
	return 0, false
}

// whole is a number as flags of whole numbers take it.
func whole(v float64) string { return strconv.FormatFloat(math.Round(v), 'f', -1, 64) }

// short is a number without needless digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// lengths are how the tokens of prompts, or of answers, are drawn.
type lengths struct {
	mean, deviation float64
	least, most     float64 // 0: no bound
}

// uniform reports whether every length between two is as likely.
func (l lengths) uniform() bool { return l.deviation == 0 && (l.least > 0 || l.most > 0) }

// bounds are the two lengths of a uniform draw; of a fixed one the same twice.
func (l lengths) bounds() (least, most float64) {
	least, most = l.mean, l.mean
	if l.least > 0 {
		least = l.least
	}
	if l.most > 0 {
		most = l.most
	}
	return least, most
}

// lengthsOf reads the facts of a side: "in", "in-sd", "in-min", "in-max".
func (d *draft) lengthsOf(side string) lengths {
	var l lengths
	l.mean, _ = d.number(side)
	l.deviation, _ = d.number(side + "-sd")
	l.least, _ = d.number(side + "-min")
	l.most, _ = d.number(side + "-max")
	if l.deviation > 0 && (l.least > l.mean-3*l.deviation && l.least > 1 || l.most > 0 && l.most < l.mean+3*l.deviation) {
		d.refuse(d.of(side+"-sd"), "with bounds nearer than three deviations is no load of perflab, whose normal lengths have none: leave out the bounds, or the deviation")
	}
	return l
}

// random gives the flags of made-up prompts of these lengths.
func (d *draft) random(in, out lengths) {
	d.set("--dataset-name", "random")
	switch {
	case in.deviation == 0 && out.deviation == 0 && !in.uniform() && !out.uniform():
		d.set("--random-input-len", whole(in.mean))
		d.set("--random-output-len", whole(out.mean))
	case in.uniform() && out.deviation > 0, out.uniform() && in.deviation > 0:
		d.refuse("lengths", "are uniform on one side and normal on the other, which perflab cannot draw: make both the same")
	case in.uniform() || out.uniform():
		least, most := in.bounds()
		from, to := out.bounds()
		d.set("--scenario", fmt.Sprintf("U(%s,%s)/(%s,%s)", whole(least), whole(most), whole(from), whole(to)))
	default:
		d.set("--scenario", fmt.Sprintf("N(%s,%s)/(%s,%s)", whole(in.mean), whole(in.deviation), whole(out.mean), whole(out.deviation)))
	}
}

// prefixed gives the flags of made-up prompts behind count shared beginnings.
func (d *draft) prefixed(in, out lengths, prefix, count float64) {
	if in.deviation > 0 || out.deviation > 0 || in.uniform() || out.uniform() {
		d.refuse(d.of("prefix"), "with lengths that vary is no dataset of perflab: give fixed lengths")
		return
	}
	if count <= 1 {
		d.random(in, out)
		d.set("--random-prefix-len", whole(prefix))
		return
	}
	d.set("--dataset-name", "prefix_repetition")
	d.set("--prefix-repetition-prefix-len", whole(prefix))
	d.set("--prefix-repetition-suffix-len", whole(in.mean))
	d.set("--prefix-repetition-num-prefixes", whole(count))
	d.set("--prefix-repetition-output-len", whole(out.mean))
	d.note(d.of("prefix"), "each beginning goes to as many prompts as every other; theirs are drawn")
}

// list reads several numbers with commas, brackets or blanks between them.
func (d *draft) list(fact string) []string {
	var out []string
	for word := range strings.FieldsFuncSeq(d.facts[fact], func(r rune) bool { return strings.ContainsRune(", []", r) }) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || v <= 0 || math.IsInf(v, 0) {
			d.refuse(d.of(fact), "is no number above 0, or list of such: write the numbers themselves")
			return nil
		}
		out = append(out, short(v))
	}
	return out
}

// along gives a load at one value of an axis, or a sweep over several.
func (d *draft) along(axis, flag string, values []string) {
	switch len(values) {
	case 0:
	case 1:
		d.set(flag, values[0])
	default:
		d.set("--sweep", axis+"="+strings.Join(ascending(values), ","))
	}
}

// ascending sorts loads, each once, as a sweep of perflab takes them.
func ascending(values []string) []string {
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b string) int {
		x, _ := parse(a)
		y, _ := parse(b)
		return cmp.Compare(x, y)
	})
	return slices.Compact(sorted)
}

// until gives the end of the load: a number of requests, seconds, or both.
func (d *draft) until(requests, seconds string) (bounded bool) {
	if v, ok := d.number(requests); ok && v > 0 {
		d.set("--num-prompts", whole(v))
		bounded = true
	}
	if v, ok := d.number(seconds); ok && v > 0 {
		d.set("--duration", short(v)+"s")
		bounded = true
	}
	return bounded
}

// target gives the server's address.
func (d *draft) target(fallback string) {
	var urls []string
	for u := range strings.FieldsFuncSeq(d.facts["target"], func(r rune) bool { return r == ' ' || r == ',' }) {
		u = strings.TrimSuffix(strings.TrimRight(u, "/"), "/v1")
		if !strings.Contains(u, "://") && !strings.HasPrefix(u, string(variable)) {
			u = "http://" + u
		}
		urls = append(urls, u)
	}
	if len(urls) == 0 {
		urls = []string{fallback}
	}
	d.set("--base-url", strings.Join(urls, ","))
}

// model gives the model's name, which perflab must be told.
func (d *draft) model(theirs string) {
	name, ok := d.facts["model"]
	if !ok {
		d.note("no --model", theirs+" asks the server for its first model: put its name in the place of MODEL")
		name = "MODEL"
	}
	if strings.ContainsAny(name, " ,") {
		d.refuse(d.of("model"), "names several models, and perflab loads one: give one")
	}
	d.set("--model", name)
}
