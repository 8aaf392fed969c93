package deploy

import (
	"context"
	"encoding/json"
	"io"
)

// Containers say in what containers an agent of a fleet starts an engine, on its own machine. Only the package of their
// runtime reads the settings, on both sides.
type Containers struct {
	Settings json.RawMessage   // may hold values of secrets
	Bind     string            // address that engines listen on in them; "": the loopback interface
	Check    func(Spec) error  // says why a deployment cannot be started in them; may be nil
	Progress func(text string) // told of pulls; may be nil
}

// Places are what an agent of a fleet starts engines in, beside processes of its own machine: containers.
type Places interface {
	// Open reads settings as Containers have them. What may not be had here is an error.
	Open(settings json.RawMessage) (Place, error)
	// Sweep ends what earlier agents of the same name left running, and gives the names of its processes by the values
	// of their markers.
	Sweep(ctx context.Context) (ended map[string]string, err error)
}

// Place is where an agent of a fleet starts an engine's processes, and short commands.
type Place interface {
	Host
	// Prepare makes ready what engines need there, tells of it, and gives the image that they will all have, by digest; "":
	// they have none.
	Prepare(ctx context.Context, tell func(text string)) (image string, err error)
	// Command is a Commander's.
	Command(ctx context.Context, node string, argv []string, stdout io.Writer) error
}
