package bus

// Role is what a member may do.
type Role string

// The roles.
const (
	Agent  Role = "agent"  // does what it is told
	Leader Role = "leader" // tells agents what to do
)

// Identity is who a process is on a hub, with the secret that proves it. It shows no secret however it is printed.
type Identity struct {
	ID   string // of an agent, made of its public key; "leader" of leaders
	Name string // as people call it
	Role Role
	Addr string // of the hub
}

// Load reads the identity that Join has kept in a directory.
func Load(dir string) (Identity, error) { return Identity{}, errUnfinished }

// LoadLeader reads the leader's identity that a hub has kept in its directory.
func LoadLeader(dir string) (Identity, error) { return Identity{}, errUnfinished }

// Outside makes an identity on a NATS server that is not perflab's: its address, the file with the seed of the nkey user,
// and the file with the certificate of who signs for the server ("": who the system trusts).
func Outside(url, seedFile, ca string, role Role) (Identity, error) {
	return Identity{}, errUnfinished
}
