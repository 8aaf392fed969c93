package bus

// Do is the subject by which a leader tells an agent to do something. The agent "*" stands for all.
func Do(id, what string) string { return agents + id + ".do." + what }

// Up is the subject by which an agent tells or asks a leader something. The agent "*" stands for all.
func Up(id, what string) string { return agents + id + ".up." + what }

// agents begins the subjects of agents.
const agents = "fleet.a."
