package bus

import (
	"fmt"
	"strconv"
	"strings"
)

// User is an nkey user of an outside NATS server, with its secret.
type User struct {
	Name   string // as people call it
	Role   Role
	ID     string // as it appears in subjects
	Public string // the nkey, which the server knows it by
	Seed   string // secret: for the file that the user's machine gets, and nothing else
}

// NewUser makes a key for a leader or an agent.
func NewUser(name string, role Role) (User, error) {
	seed, err := newSeed()
	if err != nil {
		return User{}, err
	}
	public, err := publicKey(seed)
	if err != nil {
		return User{}, err
	}
	u := User{Name: name, Role: role, ID: leaderID, Public: public, Seed: seed}
	if role == Agent {
		u.ID = agentID(public)
	}
	return u, nil
}

// Accounts is the part of a NATS server's configuration that lets users do what they may on perflab's own hub,
// and nothing else. It has no secret.
func Accounts(users []User) string {
	var b strings.Builder
	b.WriteString("# perflab's fleet: one account, in which an agent has its own subjects alone.\n")
	b.WriteString("# Put this into the server's configuration, beside tls, and jetstream with sync_interval: always.\n")
	b.WriteString("accounts {\n  PERFLAB {\n    jetstream: enabled\n    users: [\n")
	for _, u := range users {
		r := leaderRights()
		if u.Role == Agent {
			r = agentRights(u.ID)
		}
		fmt.Fprintf(&b, "      # %s %s\n", u.Role, oneLine(u.Name))
		fmt.Fprintf(&b, "      { nkey: %s\n        permissions: {\n", u.Public)
		fmt.Fprintf(&b, "          publish: { allow: [%s] }\n", quoted(r.publish))
		fmt.Fprintf(&b, "          subscribe: { allow: [%s] }\n", quoted(r.subscribe))
		if r.answers {
			fmt.Fprintf(&b, "          allow_responses: { max: 1, expires: %q }\n", answerWithin)
		}
		b.WriteString("        } }\n")
	}
	b.WriteString("    ]\n  }\n}\n")
	return b.String()
}

// oneLine keeps a name inside of its comment.
func oneLine(name string) string { return strings.Trim(strconv.Quote(name), `"`) }

func quoted(all []string) string {
	var q []string
	for _, s := range all {
		q = append(q, strconv.Quote(s))
	}
	return strings.Join(q, ", ")
}
