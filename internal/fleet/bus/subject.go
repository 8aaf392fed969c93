package bus

import "strings"

// Do is the subject by which a leader tells an agent to do something. The agent "*" stands for all.
func Do(id, what string) string { return agents + id + ".do." + what }

// Up is the subject by which an agent tells or asks a leader something. The agent "*" stands for all.
func Up(id, what string) string { return agents + id + ".up." + what }

const (
	agents = "fleet.a."     // begins the subjects of agents
	hellos = "fleet.hello." // and where a member asks the hub whether it is welcome
	joins  = "fleet.join."  // and where somebody with an invitation asks to be a member
)

// inbox begins the subjects to which a member gets its answers. Agents' are apart from the others', so that one
// pattern can stand for all of them: NATS mixes up the directions of what is denied to the server of a site.
func inbox(id string) string {
	if id == leaderID || id == hubID || strings.HasPrefix(id, guest("")) {
		return "fleet.in." + id
	}
	return agents + id + ".in"
}

// guest is the name of a connection that has an invitation only.
func guest(invitation string) string { return "join-" + invitation }

// sender says whose message one with this subject is. The server lets nobody else publish there, but leaders.
func sender(subject string) string {
	if id, ok := strings.CutPrefix(subject, hellos); ok {
		return id
	}
	if invitation, ok := strings.CutPrefix(subject, joins); ok {
		return guest(invitation)
	}
	if rest, ok := strings.CutPrefix(subject, agents); ok {
		if id, what, _ := strings.Cut(rest, "."); strings.HasPrefix(what, "up.") {
			return id
		}
	}
	return leaderID
}

// rights are the subjects that a connection may use.
type rights struct {
	publish, subscribe []string
	answers            bool // may answer whoever asks it, once for each question
}

func agentRights(id string) rights {
	return rights{
		publish:   []string{Up(id, ">"), hellos + id},
		subscribe: []string{Do(id, ">"), inbox(id) + ".>"},
		answers:   true,
	}
}

// leaderRights contain JetStream's own subjects: leases and files are kept there.
func leaderRights() rights {
	return rights{
		publish:   []string{"fleet.>", "$JS.API.>", "$KV." + bucket + ".>"},
		subscribe: []string{"fleet.>"},
	}
}

// refusedRights let a member who is not welcome ask why.
func refusedRights(id string) rights {
	return rights{publish: []string{hellos + id}, subscribe: []string{inbox(id) + ".>"}}
}

func guestRights(invitation string) rights {
	return rights{publish: []string{joins + invitation}, subscribe: []string{inbox(guest(invitation)) + ".>"}}
}

// mayPublish says whether a member may publish on a subject, so that it hears at once what the server
// would only log.
func (i Identity) mayPublish(subject string) bool {
	return i.Role == Leader && strings.HasPrefix(subject, "fleet.") || strings.HasPrefix(subject, Up(i.ID, ""))
}

// mayHandle says the same of subscribing.
func (i Identity) mayHandle(subject string) bool {
	return i.Role == Leader && strings.HasPrefix(subject, "fleet.") || strings.HasPrefix(subject, Do(i.ID, ""))
}
