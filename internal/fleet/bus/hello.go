package bus

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"perflab/internal/version"
)

// Protocol is the number of the language that members speak. It grows when an older perflab would
// misunderstand a message.
const Protocol = 1

// speaker is a perflab as it shows itself: which language, and which version.
type speaker struct {
	protocol int
	version  string
}

func speaks(v string) speaker {
	return speaker{Protocol, cmp.Or(v, version.Read().Version)}
}

// String is the form in headers and in the name of a connection: "1 v0.3.0".
func (s speaker) String() string {
	return strconv.Itoa(s.protocol) + " " + strings.ReplaceAll(s.version, " ", "_")
}

// parseSpeaker reads what String has written, and what may follow it.
func parseSpeaker(text string) (s speaker, rest string, ok bool) {
	number, text, _ := strings.Cut(text, " ")
	p, err := strconv.Atoi(number)
	s.protocol = p
	s.version, rest, _ = strings.Cut(text, " ")
	return s, rest, err == nil && s.version != ""
}

var release = regexp.MustCompile(`^v?(\d+\.\d+)\.\d`)

// line is what of a version must be the same on both sides: major and minor, or all of one that is not a release.
func line(v string) string {
	if m := release.FindStringSubmatch(v); m != nil {
		return m[1]
	}
	return v
}

// refuse says why two cannot work together, and nil if they can. The sentence is for the user of other.
func (s speaker) refuse(other speaker) *RefusedError {
	if s.protocol == other.protocol && line(s.version) == line(other.version) {
		return nil
	}
	return &RefusedError{OtherVersion, fmt.Sprintf(
		"this is perflab %s (fleet protocol %d), and the other side is perflab %s (fleet protocol %d): use the same version on both",
		other.version, other.protocol, s.version, s.protocol)}
}

// connectionName tells the server who connects: the speaker, and which process of that identity.
func connectionName(s speaker, instance string) string {
	return "perflab " + s.String() + " " + instance
}

func parseConnectionName(name string) (s speaker, instance string, ok bool) {
	rest, is := strings.CutPrefix(name, "perflab ")
	s, instance, ok = parseSpeaker(rest)
	return s, instance, ok && is && instance != ""
}
