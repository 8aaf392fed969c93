package deploy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"perflab/internal/redact"
)

// trouble is a message of the ssh client, and what to do about it.
type trouble struct {
	said *regexp.Regexp
	why  string // "": the client's own line
	help string // with %s for the host
}

// sshTrouble is compiled when something went wrong: the program starts for every command.
var sshTrouble = sync.OnceValue(func() []trouble {
	return []trouble{
		{regexp.MustCompile(`Could not resolve hostname`), "its name cannot be resolved", "correct the name, add an entry for %s to the ssh configuration, or give its address in the inventory"},
		{regexp.MustCompile(`Connection refused`), "no ssh server answers there", "start sshd on %s, or correct address and port"},
		{regexp.MustCompile(`(?:Connection|Operation) timed out|No route to host|Network is unreachable`), "", "see whether %s is up and the network leads to it"},
		{regexp.MustCompile(`REMOTE HOST IDENTIFICATION HAS CHANGED`), "its host key is not the one that is known", "find out why the key of %s has changed, then remove the old one by ssh-keygen -R"},
		{regexp.MustCompile(`Host key verification failed`), "its host key is not known", "connect once by hand, ssh %s, compare the key, and accept it"},
		{regexp.MustCompile(`Too many authentication failures`), "", "name the key for %s: identity in the inventory, or IdentityFile with IdentitiesOnly in the ssh configuration"},
		{regexp.MustCompile(`Permission denied|no such identity`), "", "ssh to %s must work without a question: load the key into the agent (ssh-add), or name user and identity"},
		{regexp.MustCompile(`[Ss]ession open refused|session request failed`), "its ssh server allows no more sessions", "raise MaxSessions in sshd_config on %s"},
		{regexp.MustCompile(`Bad configuration option|Can't open user config file|bad permissions|UNPROTECTED PRIVATE KEY`), "", "correct the ssh configuration or the key's permissions, then try ssh %s true by hand"},
		{regexp.MustCompile(`/bin/sh: .*[Nn]o such file|/bin/sh: .*not found`), "it has no /bin/sh", "perflab needs a POSIX shell on %s"},
		{regexp.MustCompile(`account is currently not available|This account|only sftp|restricted`), "the account may run no commands", "use an account with a shell on %s"},
		{regexp.MustCompile(`not responding|[Bb]roken pipe|Connection (?:closed|reset)|kex_exchange|mux_client|Control socket`), "", "see whether %s and the network are up, and start again"},
	}
})

// explainSSH makes an error of what the ssh client said.
func explainSSH(h HostEntry, said string) error {
	e := &InfraError{Op: "connect to " + h.Name, Help: "see what ssh " + h.Name + " true says by hand"}
	lines := lastOf(redact.Text(said), lastLines)
	for _, t := range sshTrouble() {
		if !t.said.MatchString(said) {
			continue
		}
		why := t.why
		for _, line := range lines {
			if why == "" && t.said.MatchString(line) {
				why = strings.TrimPrefix(line, "ssh: ")
			}
		}
		if why != "" {
			e.Err, e.Help = errors.New(why), fmt.Sprintf(t.help, h.Name)
			return e
		}
	}
	if len(lines) > 0 {
		e.Err = errors.New(lines[len(lines)-1])
	} else {
		e.Err = errors.New("the connection ended without a word")
	}
	return e
}
