package deploy

import (
	"slices"
	"strings"
)

// Placeholders of Argv, Env and File.Text.
const (
	portMark      = "{port}"
	hostMark      = "{host}"
	namedPortMark = "{port:"
	fileMark      = "{file:"
)

// texts are all in a process's description that may have placeholders.
func (m Member) texts() []string {
	texts := slices.Concat(m.Argv, m.Env)
	for _, f := range m.Files {
		texts = append(texts, f.Text)
	}
	return texts
}

// replace returns the member with placeholders replaced in all its texts.
func (m Member) replace(r *strings.Replacer) Member {
	m.Argv, m.Env, m.Files = slices.Clone(m.Argv), slices.Clone(m.Env), slices.Clone(m.Files)
	for i := range m.Argv {
		m.Argv[i] = r.Replace(m.Argv[i])
	}
	for i := range m.Env {
		m.Env[i] = r.Replace(m.Env[i])
	}
	for i := range m.Files {
		m.Files[i].Text = r.Replace(m.Files[i].Text)
	}
	return m
}

// In returns the member with each {file:NAME} replaced by where the file is when the
// files are in dir: a Host writes them there.
func (m Member) In(dir string) Member {
	var pairs []string
	for _, f := range m.Files {
		pairs = append(pairs, fileMark+f.Name+"}", strings.TrimSuffix(dir, "/")+"/"+f.Name)
	}
	return m.replace(strings.NewReplacer(pairs...))
}
