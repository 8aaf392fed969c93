package engine

import (
	"fmt"
	"strconv"
	"strings"

	"perflab/internal/engine/nested"
	"perflab/internal/engine/shellwords"
)

// String is the command as it pastes into a shell, with its environment, and host
// and port where they were given. Where it reads a file, a here-document that writes
// the file stands before it. Of a replica in pools it is a line for each engine and one for
// the router.
func (c Command) String() string {
	if c.Pools().Split() {
		if lines, err := c.poolLines(); err == nil {
			return lines
		}
	}
	args := c.Argv()
	var before strings.Builder
	for _, f := range c.Files() {
		before.WriteString(HereDocument(f.Name, f.Text))
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "{file:"+f.Name+"}", f.Name)
		}
	}
	if e, err := ByName(c.Engine); err == nil {
		if c.Host != "" {
			args = append(args, e.hostFlag, c.Host)
		}
		if c.Port != 0 {
			args = append(args, e.portFlag, strconv.Itoa(c.Port))
		}
	}
	return before.String() + shellLine(c.Env, args)
}

// HereDocument writes a file in a shell.
func HereDocument(name, text string) string {
	return hereBegin + name + hereWord + strings.TrimSuffix(text, "\n") + hereEnd
}

// shellLine is a command with its environment as it pastes into a shell.
func shellLine(env, argv []string) string {
	var words []string
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		words = append(words, key+"="+Quote(value))
	}
	return strings.Join(append(words, Join(argv)), " ")
}

// Join is words as a shell takes them, which shellwords.Split takes apart.
func Join(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote quotes what a POSIX shell would take apart; braces too, as bash expands them.
func Quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ParseText is Parse for what String prints: a command line as a shell takes it, and
// before it the file that it names.
func ParseText(text string) (Command, error) {
	name, body, rest := hereDocument(text)
	argv, err := shellwords.Split(rest)
	if err != nil {
		return Command{}, err
	}
	c, err := Parse(argv)
	if err != nil || name == "" || c.FilePath != name {
		return c, err
	}
	tree, err := nested.Read(body)
	if err != nil {
		return c, fmt.Errorf("file %s: %w", name, err)
	}
	return c.WithFile(tree)
}

const (
	hereBegin = "cat > "
	hereWord  = " <<'EOF'\n"
	hereEnd   = "\nEOF\n"
)

// hereDocument takes the file off a text that String printed.
func hereDocument(text string) (name, body, rest string) {
	text = strings.TrimLeft(strings.ReplaceAll(text, "\r\n", "\n"), " \t\n")
	after, ok := strings.CutPrefix(text, hereBegin)
	if !ok {
		return "", "", text
	}
	name, after, ok = strings.Cut(after, hereWord)
	body, rest, end := strings.Cut(after, hereEnd)
	if !ok || !end || strings.Contains(name, "\n") {
		return "", "", text
	}
	return name, body, rest
}
