package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Versions lists the versions whose flags were read, oldest first. One between two of
// them counts as the older one, a newer one as the newest.
func (e *Engine) Versions() []string { return slices.Clone(e.list().known) }

// release is a version as numbers: 0.11.2 is {0, 11, 2}, as is 0.11.2rc1, whose flags are
// those of the release. The builds b1234 of llama.cpp come before its numbered releases.
func release(version string) (numbers []int, ok bool) {
	version = strings.TrimPrefix(version, "v")
	if build, found := strings.CutPrefix(version, "b"); found {
		n, err := strconv.Atoi(build)
		return []int{0, 0, n}, err == nil
	}
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil { // "post1" or "0rc2" says no more than the numbers before it
			break
		}
		numbers = append(numbers, n)
	}
	return numbers, len(numbers) > 1
}

// atLeast reports whether a version is known to be another or a later one.
func atLeast(version, least string) bool {
	have, ok := release(version)
	return ok && !before(have, least)
}

// AtLeast reports whether the command's engine is known to be of a version or later.
func (c Command) AtLeast(version string) bool { return atLeast(c.Version, version) }

// before reports whether version a is older than version b, as far as b tells: 0.11.2 is
// not newer than 0.11.
func before(a []int, b string) bool {
	have, _ := release(b)
	return slices.Compare(a[:min(len(a), len(have))], have) < 0
}

// In reports whether the version has the flag: the nearest older one that the catalogue
// knows, the oldest for what is older than all. A version that is not given, or that has
// no numbers, has every flag.
func (f Flag) In(version string) bool {
	v, ok := release(version)
	if !ok || len(f.known) == 0 {
		return true
	}
	if oldest, _ := release(f.known[0]); before(v, f.known[0]) {
		v = oldest
	}
	if f.Since != "" && before(v, f.Since) {
		return false
	}
	next := f.beside(f.Until, 1)
	return next == "" || before(v, next)
}

// beside is the known version that stands so many places from one of them, "" for none.
func (f Flag) beside(version string, places int) string {
	i := slices.Index(f.known, version)
	if i < 0 || i+places < 0 || i+places >= len(f.known) {
		return ""
	}
	return f.known[i+places]
}

// lacks reports whether the version is known not to have the flag. Between two known
// versions a flag of the newer one may or may not be there: its own --help tells.
func (f Flag) lacks(version string) bool {
	if f.In(version) {
		return false
	}
	v, _ := release(version)
	if f.Until != "" && !before(v, f.Until) {
		return true
	}
	older := f.beside(f.Since, -1)
	if f.Exact || older == "" {
		return true
	}
	have, _ := release(older)
	return slices.Compare(v[:min(len(v), len(have))], have) <= 0
}

// Takes reports whether the version may take a choice of the flag's: it is not known to
// lack it.
func (f *Flag) Takes(value, version string) bool { return !f.span(value).lacks(version) }

// span is what is known of a choice, as of a flag.
func (f *Flag) span(value string) Flag {
	return Flag{Since: f.Gained[value], Until: f.Lost[value], known: f.known}
}

// Untried is the newest version that was read, for a version that is newer still; "" for
// any other. Its flags are what its own help lists; all else counts as in that one.
func (e *Engine) Untried(version string) (newest string) {
	v, ok := release(version)
	if known := e.list().known; ok && len(known) > 0 {
		newest = known[len(known)-1]
	}
	have, _ := release(newest)
	if slices.Compare(v[:min(len(v), len(have))], have) <= 0 {
		return ""
	}
	return newest
}

// presence says in words which versions have the flag, "" for all known ones.
func (f Flag) presence() string {
	switch {
	case f.Since != "" && f.Until != "":
		return fmt.Sprintf("it is known from %s to %s", f.Since, f.Until)
	case f.Until != "":
		return "it is known up to " + f.Until
	case f.Exact:
		return "it came with " + f.Since
	case f.Since != "":
		return fmt.Sprintf("it is known from %s on", f.Since)
	}
	return ""
}
