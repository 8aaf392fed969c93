package machines

// Given says that a flag names the hub.
func (h *Hub) Given() bool { return h.dir != "" || h.seed != "" || h.ca != "" }

// Words are the flags as they were given, for a command that is run again.
func (h *Hub) Words() []string {
	var out []string
	for _, f := range [][2]string{{"--hub", h.dir}, {"--hub-seed", h.seed}, {"--hub-ca", h.ca}} {
		if f[1] != "" {
			out = append(out, f[0], f[1])
		}
	}
	return out
}
