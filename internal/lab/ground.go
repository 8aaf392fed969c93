package lab

import (
	"fmt"
	"os"

	"perflab/internal/deploy/docker"
	"perflab/internal/hardware"
	"perflab/internal/study"
)

// ground is what the engines of a study stand on.
type ground struct {
	pool hardware.Pool // that they are dealt devices from; those of machines that ssh reaches are in the inventory
}

// claim takes the devices that engines may be dealt from what the environment and the
// study name. Others on the machine are other people's.
func (l *launcher) claim() error {
	here := l.Runtime.Kind == study.Process
	if l.Runtime.Kind == study.Docker {
		rt, err := l.runtime("")
		if err != nil {
			return err
		}
		if here, err = rt.(*docker.Runtime).Here(); err != nil {
			return fmt.Errorf("find what devices there are: %w", err)
		}
	}
	var err error
	l.ground.pool, err = l.Pool(here, os.LookupEnv)
	return err
}
