package doc

import "strings"

// SplitFiles takes the here-documents off a command that write the files it reads.
func SplitFiles(cmd string) (files, command string) {
	const end = "\nEOF\n"
	if i := strings.LastIndex(cmd, end); i >= 0 && strings.HasPrefix(cmd, "cat > ") {
		return cmd[:i+len(end)], cmd[i+len(end):]
	}
	return "", cmd
}

// WrapCommand breaks a long command line before its flags, so that it reads
// and still runs when pasted. Words in quotes stay whole.
func WrapCommand(cmd string) string {
	const limit = 76
	files, cmd := SplitFiles(cmd)
	if len(cmd) <= limit || strings.Contains(cmd, "\n") {
		return files + cmd
	}
	var b strings.Builder
	b.WriteString(files)
	var quote byte
	for i := 0; i < len(cmd); i++ {
		c := cmd[i]
		switch {
		case quote == 0 && c == '\\' && i+1 < len(cmd):
			b.WriteByte(c)
			i++
			c = cmd[i]
		case quote == '"' && c == '\\' && i+1 < len(cmd):
			b.WriteByte(c)
			i++
			c = cmd[i]
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && c == ' ' && i > 12 && i+1 < len(cmd) && cmd[i+1] == '-': // 12: python3 -m stays whole
			b.WriteString(" \\\n ")
		}
		b.WriteByte(c)
	}
	return b.String()
}

// WrapScript breaks the lines of a script as WrapCommand does one.
func WrapScript(script string) string {
	files, script := SplitFiles(script)
	lines := strings.Split(script, "\n")
	for i := range lines {
		lines[i] = WrapCommand(lines[i])
	}
	return files + strings.Join(lines, "\n")
}
