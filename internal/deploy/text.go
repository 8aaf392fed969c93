package deploy

import (
	"regexp"
	"strconv"
	"strings"

	"perflab/internal/redact"
)

// quote makes one word of any text, also one with line breaks.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// lastOf returns the last n lines that are not empty, the newest last. Of a line that was
// written over and over, as a progress bar is, it is what stands there in the end.
func lastOf(text string, n int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line = line[strings.LastIndexByte(line, '\r')+1:]; line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-n):]
}

// quoteLine quotes a log line for a message, cut at a length that fits one.
func quoteLine(s string) string {
	const most = 300
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// commandLine prints environment and command as a shell would take them, with
// secrets replaced.
func commandLine(argv, env []string) string {
	return shellLine(redact.Argv(argv), redact.Env(env))
}

// shellLine prints environment and command as a shell would take them.
func shellLine(argv, env []string) string {
	words := make([]string, 0, len(env)+len(argv))
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		words = append(words, k+"="+shellWord(v))
	}
	for _, a := range argv {
		words = append(words, shellWord(a))
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[\w@%+=:,./\[\]-]+$`)

// shellWord quotes s for a POSIX shell where it must.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return quote(s)
}
