package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"perflab/internal/deploy"
)

var _ deploy.Host = (*host)(nil)

// filesDir is where a process's files are in its container.
const filesDir = "/perflab"

// bridged tells whether containers have a network of their own.
func (e *engine) bridged() bool {
	return e.settings.Container == "" && e.settings.Network == NetworkBridge
}

// bind is the address that engines listen on: the loopback interface where that of the
// container is this machine's.
func (e *engine) bind() string {
	own := e.settings.Container != "" && e.attached.address != e.address
	if e.bridged() || own || !e.local() {
		return anyAddress
	}
	return loopback
}

// checkSpec says why a deployment cannot be started with the settings.
func (e *engine) checkSpec(s deploy.Spec) error {
	for i, r := range s.Replicas {
		if e.bridged() && len(r.Peers) > 0 {
			return fmt.Errorf("replica %d has several processes, which would each have a network of its own and not reach each other", i)
		}
	}
	return nil
}

// Ports chooses ports that are free in the container that runs already, else on this
// machine, all held until the last is chosen. Of another Docker host only the start
// itself tells which are taken.
func (h *host) Ports(ctx context.Context, node string, n int) ([]int, error) {
	if err := oneNode(node); err != nil {
		return nil, err
	}
	if h.settings.Container != "" {
		return h.keeper(h.attached.id).Ports(ctx, "", n)
	}
	return deploy.ChoosePorts(h.bind(), n)
}

// Spawn creates a container, copies the process's files into it and starts it.
func (h *host) Spawn(ctx context.Context, j deploy.Job) (_ deploy.Running, err error) {
	if err := oneNode(j.Node); err != nil {
		return nil, &deploy.InfraError{Op: j.Op, Err: err}
	}
	if h.settings.Container != "" {
		return h.spawnAttached(ctx, j)
	}
	defer func() {
		if err == nil {
			return
		}
		if left := h.removeMarked(j.Marker); left != nil {
			err = errors.Join(err, left)
		}
	}()
	j.Member = j.In(filesDir)
	opts, err := h.options(j)
	if err != nil {
		return nil, &deploy.InfraError{Op: j.Op, Err: err}
	}
	log, err := os.OpenFile(j.Log.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, &deploy.InfraError{Op: j.Op, Err: err}
	}
	id, err := h.create(ctx, j, opts)
	if err != nil {
		log.Close()
		return nil, err
	}
	c := newRun(h.engine, id, log)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spawned = append(h.spawned, c)
	return c, nil
}

// create creates the container and starts it. Neither request is cut off: the daemon
// would go on, and nobody knew with what.
func (h *host) create(ctx context.Context, j deploy.Job, opts client.ContainerCreateOptions) (id string, err error) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	made, err := h.api.ContainerCreate(whole, opts)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", h.explain(ctx, j.Op+": create a container", err)
	}
	for _, w := range made.Warnings {
		h.progress("docker: " + w)
	}
	if len(j.Files) > 0 {
		files, err := archive(j.Files)
		if err != nil {
			return "", &deploy.InfraError{Op: j.Op, Err: err}
		}
		if _, err := h.api.CopyToContainer(ctx, made.ID, client.CopyToContainerOptions{DestinationPath: "/", Content: files}); err != nil {
			return "", h.explain(ctx, j.Op+": copy files into the container", err)
		}
	}
	if _, err := h.api.ContainerStart(whole, made.ID, client.ContainerStartOptions{}); err != nil {
		return "", h.explainProgram(ctx, j.Op+": start the container", opts.Config.Entrypoint[0], err)
	}
	return made.ID, nil
}

// archive holds the files under filesDir. They are for every user of the container, of
// whom only the name may be known.
func archive(files []deploy.File) (*bytes.Buffer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	dir := strings.TrimPrefix(filesDir, "/") + "/"
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755})
	for _, f := range files {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + f.Name, Mode: 0o644, Size: int64(len(f.Text))})
		}
		if err == nil {
			_, err = w.Write([]byte(f.Text))
		}
	}
	return &b, errors.Join(err, w.Close())
}

// options describe the container of a process.
func (h *host) options(j deploy.Job) (client.ContainerCreateOptions, error) {
	opts := h.baseOptions(j.Argv, append(slices.Clone(j.Env), j.Marker))
	opts.Config.Labels[labelDeployment] = markerValue(j.Marker)
	opts.Config.Labels[labelProcess] = j.Name
	opts.Name = "perflab-" + strings.ReplaceAll(markerValue(j.Marker), "/", "-")
	opts.HostConfig.DeviceRequests = h.gpus(j)
	if opts.HostConfig.DeviceRequests == nil {
		if visible, ok := j.VisibleEnv(); ok {
			// Images that ask NVIDIA's runtime for all GPUs by a variable get none.
			opts.Config.Env = append(opts.Config.Env, visible, "NVIDIA_VISIBLE_DEVICES=void")
		}
	}
	if !h.bridged() {
		return opts, nil
	}
	opts.Config.ExposedPorts, opts.HostConfig.PortBindings = network.PortSet{}, network.PortMap{}
	at := loopback
	if !h.local() {
		at = anyAddress
	}
	for _, p := range j.Ports {
		if p < 1 || p > 1<<16-1 {
			return opts, fmt.Errorf("%d is no port", p)
		}
		port, _ := network.PortFrom(uint16(p), network.TCP)
		opts.Config.ExposedPorts[port] = struct{}{}
		opts.HostConfig.PortBindings[port] = []network.PortBinding{{HostIP: netip.MustParseAddr(at), HostPort: strconv.Itoa(p)}}
	}
	return opts, nil
}

// gpus are those of a process: those that it was dealt, or else all where they are asked
// for. In the container they are numbered from 0, so no variable names them there.
func (h *host) gpus(j deploy.Job) []container.DeviceRequest {
	if h.settings.GPUs == GPUsNone || j.Devices != nil && len(j.Devices) == 0 {
		return nil
	}
	if j.Devices == nil {
		return h.allGPUs()
	}
	return []container.DeviceRequest{{Capabilities: [][]string{{"gpu"}}, DeviceIDs: j.Devices}}
}

func (e *engine) allGPUs() []container.DeviceRequest {
	if e.settings.GPUs != GPUsAll {
		return nil
	}
	return []container.DeviceRequest{{Capabilities: [][]string{{"gpu"}}, Count: -1}}
}

// baseOptions describe a container of the image that runs argv.
func (e *engine) baseOptions(argv, env []string) client.ContainerCreateOptions {
	s := e.settings
	words := slices.Concat(s.Entrypoint, argv)
	config := &container.Config{
		Image: e.image.id, Entrypoint: words[:1], Cmd: words[1:],
		Env: slices.Concat(s.environment(), env), User: s.User, WorkingDir: s.WorkDir, Labels: map[string]string{},
		// The image's own health check would send requests into the measurement.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	for _, l := range s.Labels {
		k, v, _ := strings.Cut(l, "=")
		config.Labels[k] = v
	}
	if e.agent != "" {
		config.Labels[labelAgent] = e.agent
	}
	shm, _ := parseSize(s.ShmSize) // Validate has seen that they are sizes
	memory, _ := parseSize(s.Memory)
	hc := &container.HostConfig{
		NetworkMode: container.NetworkMode(cmp.Or(s.Network, NetworkHost)), IpcMode: container.IpcMode(s.IPC), PidMode: container.PidMode(s.PID),
		ShmSize: shm, Runtime: s.ContainerRuntime, ExtraHosts: s.ExtraHosts, GroupAdd: s.GroupAdd, SecurityOpt: s.SecurityOpt,
		CapAdd: s.CapAdd, Privileged: s.Privileged, RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		// The engine's default may be one that cannot be read.
		LogConfig: container.LogConfig{Type: "json-file"},
	}
	hc.Memory, hc.NanoCPUs, hc.CpusetCpus = memory, int64(s.CPUs*1e9), s.CPUSet
	if s.Init {
		hc.Init = new(true)
	}
	for _, text := range s.Mounts {
		b, _ := parseMount(text)
		m := mount.Mount{Type: mount.TypeBind, Source: b.source, Target: b.target, ReadOnly: b.readOnly}
		if b.volume() {
			m.Type = mount.TypeVolume
		}
		hc.Mounts = append(hc.Mounts, m)
	}
	for _, text := range s.Ulimits {
		l, _ := parseUlimit(text)
		hc.Ulimits = append(hc.Ulimits, &container.Ulimit{Name: l.name, Soft: l.soft, Hard: l.hard})
	}
	for _, text := range s.Devices {
		parts := strings.Split(text, ":")
		d := container.DeviceMapping{PathOnHost: parts[0], PathInContainer: parts[min(1, len(parts)-1)], CgroupPermissions: "rwm"}
		if len(parts) == 3 {
			d.CgroupPermissions = parts[2]
		}
		hc.Devices = append(hc.Devices, d)
	}
	return client.ContainerCreateOptions{Config: config, HostConfig: hc, Platform: e.platform()}
}

// markerValue is the value of the variable that marks a process.
func markerValue(marker string) string {
	_, v, _ := strings.Cut(marker, "=")
	return v
}

// running is a container of the deployment that runs.
func (h *host) running() (id string, ok bool) {
	if h.settings.Container != "" {
		return h.attached.id, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.spawned {
		select {
		case <-c.exited:
		default:
			return c.id, true
		}
	}
	return "", false
}

// marked lists the containers that have the marker, running or not.
func (e *engine) marked(ctx context.Context, marker string) (ids map[string]string, err error) {
	value := markerValue(marker)
	if value == "" {
		return nil, nil // as a filter it would match others'
	}
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labelDeployment+"="+value)})
	if err != nil {
		return nil, err
	}
	ids = map[string]string{}
	for _, c := range list.Items {
		if c.Labels[labelDeployment] == value {
			ids[c.ID] = strings.TrimPrefix(strings.Join(c.Names, " "), "/")
		}
	}
	return ids, nil
}

// removeMarked ends and removes what a failed start may have left.
func (e *engine) removeMarked(marker string) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	ids, err := e.marked(ctx, marker)
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		err = errors.Join(err, e.remove(ctx, id))
	}
	if client.IsErrConnectionFailed(err) {
		return nil // the start's own error says so
	}
	return err
}

// End removes the container of an earlier perflab, found by its label and by its id.
func (h *host) End(ctx context.Context, r deploy.Record) (ended []string, err error) {
	if here := h.api.DaemonHost(); r.Engine != "" && r.Engine != here {
		return nil, fmt.Errorf("%s was started by the Docker Engine at %s, and this is the one at %s: name that by docker_host, or end it there", r.Name, r.Engine, here)
	}
	if r.Container != "" {
		return h.endAttached(ctx, r)
	}
	ids, err := h.marked(ctx, r.Marker)
	if err != nil {
		return nil, h.explain(ctx, "look for the containers of an earlier deployment", err)
	}
	if _, listed := ids[r.ID]; r.ID != "" && !listed {
		c, err := h.api.ContainerInspect(ctx, r.ID, client.ContainerInspectOptions{})
		switch {
		case isNotFound(err):
		case err != nil:
			return nil, h.explain(ctx, "look at a container of an earlier deployment", err)
		case c.Container.ID == r.ID:
			ids[r.ID] = strings.TrimPrefix(c.Container.Name, "/")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		what := fmt.Sprintf("container %s (%s)", shortID(id), ids[id])
		_, _ = h.api.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: new(leftoverGrace)}) // what stays is removed by force
		if err := h.remove(ctx, id); err != nil {
			return ended, fmt.Errorf("%s of an earlier deployment: %w", what, err)
		}
		ended = append(ended, what)
	}
	return ended, nil
}

const leftoverGrace = 1 // seconds: nobody waits for what a leftover still writes

func oneNode(node string) error {
	if node != "" {
		return fmt.Errorf("the docker runtime has one machine, and %s is not known to it: use the ssh runtime for several", node)
	}
	return nil
}

// spawnAttached starts a process in the container that runs already.
func (h *host) spawnAttached(ctx context.Context, j deploy.Job) (deploy.Running, error) {
	j.Node = h.place(h.attached.id)
	j.Argv = slices.Concat(h.settings.Entrypoint, j.Argv)
	c, err := h.keeper(h.attached.id).Spawn(ctx, j)
	if err != nil {
		return nil, err
	}
	return &attachedProcess{c, h.engine, h.attached}, nil
}

// endAttached ends what a perflab that is gone left in a container; when that does not run,
// nothing of it does.
func (h *host) endAttached(ctx context.Context, r deploy.Record) ([]string, error) {
	runs, err := h.runs(ctx, r.Container)
	if err != nil {
		return nil, h.explain(ctx, "look at the container of an earlier deployment", err)
	}
	if !runs {
		return nil, nil
	}
	return h.keeper(r.Container).End(ctx, r)
}

// host is a Docker Engine as a deploy.Host. Each start has one of its own.
type host struct {
	*engine
	mu      sync.Mutex
	spawned []*run
}
