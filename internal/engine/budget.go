package engine

// Memory is what the memory of one device goes to, in bytes.
type Memory struct {
	Device     int64 `json:"device"`
	Weights    int64 `json:"weights"`
	Activation int64 `json:"activation"` // of the largest step
	Library    int64 `json:"library"`    // context and communication buffers
	Graphs     int64 `json:"graphs"`     // captured; inside or beside the share, by engine
	KV         int64 `json:"kv"`         // pool
}

// Memory is the arithmetic that the KV cache's size follows from.
func (c Config) Memory() Memory {
	return Memory{
		Device: c.deviceBytes(), Weights: c.weightBytes(), Activation: c.activationBytes(),
		Library: c.libraryBytes(), Graphs: c.graphBytes(), KV: max(0, c.KVPoolBytes()),
	}
}
