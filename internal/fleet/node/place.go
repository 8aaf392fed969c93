package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/deploy"
)

// Ways to start engines, as an agent is told and as it tells.
const (
	WayProcess = "process"
	WayDocker  = "docker"
)

// Ways reads a list of ways to start engines, such as process,docker, of an agent that allows images, or more of containers; ""
// is none.
func Ways(text string, images, more bool) ([]string, error) {
	var out []string
	for way := range strings.SplitSeq(text, ",") {
		switch {
		case text == "":
		case way != WayProcess && way != WayDocker:
			return nil, fmt.Errorf("--engines %q is no way to start engines: use --engines=%s, --engines=%s, or --engines=%[2]s,%[3]s", way, WayProcess, WayDocker)
		case !slices.Contains(out, way):
			out = append(out, way)
		}
	}
	switch inContainers := slices.Contains(out, WayDocker); {
	case inContainers && !images:
		return nil, errors.New("--engines=docker starts no container of an image that is not allowed: name images by --image, such as --image 'vllm/*' (--image '*' allows all)")
	case !inContainers && (images || more):
		return nil, errors.New("--image, --mount and --docker say what containers may have, and no engines are started in containers here: add --engines=docker")
	}
	return out, nil
}

// processes are a place on the machine itself.
type processes struct{ deploy.Process }

var _ deploy.Place = processes{}

func (p processes) Ports(ctx context.Context, node string, n int) ([]int, error) {
	return p.Host().Ports(ctx, node, n)
}

func (p processes) Spawn(ctx context.Context, j deploy.Job) (deploy.Running, error) {
	return p.Host().Spawn(ctx, j)
}

func (p processes) End(ctx context.Context, r deploy.Record) ([]string, error) {
	return p.Host().End(ctx, r)
}

// Prepare has nothing to do.
func (processes) Prepare(context.Context, func(string)) (string, error) { return "", nil }

// rooms are the containers' places of a study, by their settings: what a tag means is found once in a study, also
// when its leader loses the node and takes it again.
type rooms struct {
	mu      sync.Mutex
	session string
	all     map[string]deploy.Place
}

// open gives the place of some settings, and forgets those of another study.
func (r *rooms) open(in deploy.Places, session string, settings []byte) (deploy.Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if session == "" || session != r.session {
		r.leave()
		r.session, r.all = session, map[string]deploy.Place{}
	}
	if p := r.all[string(settings)]; p != nil {
		return p, nil
	}
	p, err := in.Open(settings)
	if err == nil {
		r.all[string(settings)] = p
	}
	return p, err
}

// leave lets go of what places hold. Nobody opens one meanwhile.
func (r *rooms) leave() {
	for _, p := range r.all {
		if c, ok := p.(io.Closer); ok {
			_ = c.Close() // of connections that are idle
		}
	}
	r.all = nil
}

// sweepWithin is how long what has the containers may take to say what there is, and to end it.
const sweepWithin = 10 * time.Second

// sweep ends what earlier agents, or holders, left in containers. It is called while none of a holder runs.
func (s *server) sweep(ctx context.Context) ([]leftover, error) {
	if s.o.Containers == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	ended, err := s.o.Containers.Sweep(ctx)
	var out []leftover
	for marker, name := range ended {
		s.log.Warn("a container that an earlier agent or holder had left was ended", "engine", name)
		out = append(out, leftover{marker, name})
	}
	return out, err
}

// place is where the holder's engines start by some settings, as far as this agent allows it.
func (h *holder) place(o Settings) (deploy.Place, error) {
	if o.Containers == nil {
		if h.s.o.Processes {
			return processes{deploy.Process{Dir: o.Dir, Limits: o.Limits}}, nil
		}
		return nil, &deploy.InfraError{
			Op: "start a process", Err: errors.New("its agent starts engines in containers alone"), Lasting: true,
			Help: "give the study runtime.docker, or whoever administers the machine starts perflab agent with --engines=process,docker",
		}
	}
	if h.s.o.Containers == nil {
		return nil, &deploy.InfraError{
			Op: "start containers", Err: errors.New("its agent starts engines as processes alone"), Lasting: true,
			Help: "leave runtime.docker out of the study, or whoever administers the machine starts perflab agent with --engines=docker and --image",
		}
	}
	h.sweeping.Lock()
	defer h.sweeping.Unlock()
	if h.unswept != nil { // nothing of this holder's runs in containers yet
		if _, h.unswept = h.s.sweep(h.ctx); h.unswept != nil {
			return nil, h.unswept
		}
	}
	return h.s.rooms.open(h.s.o.Containers, h.session, o.Containers)
}
