package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/engine/cluster"
	"perflab/internal/hardware"
	"perflab/internal/redact"
	"perflab/internal/study"
)

// ground is what the engines of a study stand on.
type ground struct {
	pool  hardware.Pool // that they are dealt devices from; those of machines that ssh reaches are in the inventory
	title string        // what the devices call themselves, "": not known, or not all the same
	kind  string        // that, with driver and clocks: figures of machines of one kind differ by no more than a factor
	image string        // of engines in containers, by digest: another one is another kind
	notes []string      // what a reader must know of them, one sentence each

	indices map[string]map[string]int // of the machines' devices by the names that they are dealt by, where known
}

// look finds out what would keep every trial from starting, before the first one: devices
// that are other people's or full, hardware that is not what the study says, programs and
// models that are not there. Each is one sentence of the error.
func (l *launcher) look(ctx context.Context) error {
	here, err := l.here()
	if err != nil {
		return err
	}
	if l.ground.pool, err = l.Pool(here, os.LookupEnv); err != nil || !l.Runtime.StartsEngines() {
		return err
	}
	wrong, err := l.inspectAny(ctx, here)
	if err != nil {
		return err
	}
	// In a cluster that lacks something a pod that is asked would wait for it.
	if ctx.Err() == nil && (len(wrong) == 0 || l.Runtime.Kind != study.Kubernetes) {
		l.watch.change(func(s *Status) { s.Phase = "looking for the engines" })
		wrong = append(wrong, l.absent(ctx)...)
		l.ground.image = l.images()
	}
	if ctx.Err() == nil && len(wrong) == 0 {
		wrong, err = l.unlisted(ctx)
		if err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(wrong...)
}

// inspectAny looks at the machines, or at the cluster, which has nodes that are not known yet.
func (l *launcher) inspectAny(ctx context.Context, here bool) ([]error, error) {
	if l.Runtime.Kind == study.Kubernetes {
		l.watch.change(func(s *Status) { s.Phase = "looking at the cluster" })
		return l.cluster(ctx)
	}
	l.watch.change(func(s *Status) { s.Phase = "looking at the hardware" })
	return l.inspect(ctx, here), nil
}

// here reports whether engines are given this machine's devices.
func (l *launcher) here() (bool, error) {
	if l.Runtime.Kind != study.Docker {
		return l.Runtime.Kind == study.Process, nil
	}
	rt, err := l.runtime("")
	if err != nil {
		return false, err
	}
	here, err := rt.(*docker.Runtime).Here()
	if err != nil {
		return false, fmt.Errorf("find what devices there are: %w", err)
	}
	return here, nil
}

// LookHere looks at the hardware of a study that has not begun, where its engines would be
// started on this machine, and gives a line for each thing that was found, or why nothing was
// looked at. A study may be looked at on another machine than it is for: what would end it here is a warning.
func LookHere(ctx context.Context, s *study.Study) []string {
	l := newSession(s, Options{}).engines
	defer l.release()
	if err := study.Startable(runtime.GOOS, s.Runtime.Kind); err != nil {
		return []string{"warning: on this machine the study would end before it begins: " + err.Error()}
	}
	if !s.Runtime.StartsEngines() {
		return []string{fmt.Sprintf("The hardware was not looked at: runtime %s starts no engines on it.", s.Runtime.Kind)}
	}
	here, err := l.here()
	switch {
	case err != nil:
		return []string{fmt.Sprintf("The hardware was not looked at: %v.", err)}
	case s.Runtime.Kind == study.Kubernetes:
		return []string{"The hardware was not looked at: the cluster chooses the nodes. perflab kube check looks at what it has."}
	case !here || len(s.Runtime.Machines) > 0:
		return []string{"The hardware was not looked at: it is in other machines, which are asked when the study begins."}
	}
	var wrong []error
	if l.ground.pool, err = l.Pool(here, os.LookupEnv); err != nil {
		wrong = append(wrong, err)
	} else {
		wrong = l.inspect(ctx, here)
	}
	out := l.ground.notes
	for _, err := range wrong {
		out = append(out, "warning: on this machine the study would end before it begins: "+err.Error())
	}
	return out
}

// sort is what the machine is: figures of machines of one sort differ by no more than a factor.
func (g *ground) sort() string {
	return strings.Join(slices.DeleteFunc([]string{g.kind, g.image}, func(s string) bool { return s == "" }), ", ")
}

// note adds what a reader must know.
func (g *ground) note(format string, args ...any) string {
	text := redact.Text(redact.Plain(fmt.Sprintf(format, args...)))
	g.notes = append(g.notes, text)
	return text
}

// warn is a note that whoever waits for the study should have read before its end.
func (l *launcher) warn(format string, args ...any) {
	text := l.ground.note(format, args...)
	if l.tell != nil {
		l.tell(text)
	}
}

// inspect holds the machines against what the study says of them.
func (l *launcher) inspect(ctx context.Context, here bool) []error {
	if l.Hardware.Check == study.CheckOff {
		l.ground.note("The hardware was not looked at, as the study wants it: what is said of it is what the study says.")
		return nil
	}
	c, err := l.inspector(here)
	if err != nil {
		return []error{err}
	}
	if c == nil {
		l.ground.note("The hardware was not looked at, for it is behind %s that gives commands no GPU: what is said of it is what the study says.", map[bool]string{false: "another Docker host", true: "a machine's Docker Engine"}[l.onNodes()])
		return nil
	}
	var wrong []error
	var titles []string
	for _, n := range l.nodes() {
		m := machine{launcher: l, at: asker{Commander: c, node: n.Name, limit: askTimeout}, node: n, where: cmp.Or(n.Name, "this machine")}
		if !here && n.Name == "" {
			m.where = "the Docker host"
		}
		title, err := m.inspect(ctx)
		if err != nil {
			wrong = append(wrong, err)
		}
		titles = append(titles, title)
	}
	if titles = slices.Compact(titles); len(titles) == 1 {
		l.ground.title = titles[0]
	}
	return wrong
}

// inspector runs commands where the devices are; nil: nothing does.
func (l *launcher) inspector(here bool) (deploy.Commander, error) {
	name := l.anyServed()
	if l.InContainers() {
		s := l.Container(name)
		switch {
		case l.Runtime.Kind == study.Fleet: // whose agents give a command all devices, unless the study asks for none
			return l.lookout(name)
		case here: // a container of one engine sees neither other processes nor all devices
			return deploy.Process{}, nil
		case s.Container == "" && s.GPUs != docker.GPUsAll && !l.OnCPU():
			return nil, nil
		}
	}
	rt, err := l.runtime(name)
	if err != nil {
		return nil, err
	}
	c, _ := rt.(deploy.Commander)
	return c, nil
}

// machine is one that engines will run on.
type machine struct {
	*launcher
	at    asker
	node  cluster.Node
	where string // for sentences
}

// ask runs a command on the machine.
func (m machine) ask(ctx context.Context, argv ...string) (string, error) {
	text, err := m.at.ask(ctx, append([]string{"/bin/sh", "-c", `exec "$@"`, "sh"}, argv...)...)
	if exit, ok := errors.AsType[*deploy.ExitError](err); ok && exit.Code == 127 {
		err = hardware.ErrNoTool
	}
	return text, err
}

// inventories are asked for by platform.
var inventories = map[arch.Platform]func(hardware.Ask) (hardware.Inventory, error){
	arch.CUDA: hardware.NVIDIA, arch.ROCm: hardware.AMD, arch.NPU: hardware.Ascend,
}

// inspect holds the machine against the study, and gives what its devices call themselves.
func (m machine) inspect(ctx context.Context) (title string, err error) {
	if m.Accelerator.Platform == arch.CPU {
		return m.host(ctx)
	}
	in, err := inventories[m.Accelerator.Platform](func(argv ...string) (string, error) { return m.ask(ctx, argv...) })
	switch _, unreachable := errors.AsType[*deploy.InfraError](err); {
	case unreachable:
		return "", err
	case err != nil:
		return "", m.untold(ctx, err)
	}
	names := make([]string, len(m.node.Devices))
	for i, d := range m.node.Devices {
		names[i] = m.ground.pool.Machine(d)
	}
	picked, missing := in.Pick(names)
	if len(missing) > 0 {
		return "", m.mismatch("%s has %d of the devices, and the study uses device %s of it", m.where, len(in.Devices), strings.Join(missing, ", "))
	}
	if err := m.compare(picked); err != nil {
		return "", err
	}
	indices := map[string]int{}
	for i, d := range m.node.Devices {
		indices[d] = picked[i].Index
	}
	m.ground.indices[m.node.Name] = indices
	title = m.found(picked)
	if in.Untold != "" {
		m.ground.note("Of %s: %s.", m.where, in.Untold)
	}
	others := m.others(picked, in.Holders)
	return title, m.room(picked, others)
}

// deviceFiles are those of a platform's devices.
var deviceFiles = map[arch.Platform]string{arch.CUDA: "/dev/nvidia[0-9]*", arch.ROCm: "/dev/kfd", arch.NPU: "/dev/davinci[0-9]*"}

// untold is for a machine whose tool does not tell of the devices: where there are files of
// such devices they are believed to be what the study says, else there are none.
func (m machine) untold(ctx context.Context, why error) error {
	files := deviceFiles[m.Accelerator.Platform]
	if _, err := m.ask(ctx, "/bin/sh", "-c", "ls -d "+files); err == nil {
		m.ground.note("What devices %s has is not known (%v): what is said of them is what the study says.", m.where, why)
		return nil
	}
	return m.mismatch("no %s is found on %s: there is no %s, and %v", m.Accelerator.Title, m.where, path.Dir(files)+"/"+strings.TrimRight(path.Base(files), "[0-9]*"), why)
}

// mismatch is a machine that is not what the study says.
func (m machine) mismatch(format string, args ...any) error {
	return fmt.Errorf("%s: correct the study's hardware, or set check: off there", redact.Text(redact.Plain(fmt.Sprintf(format, args...))))
}

// memoryShare is how far a device's memory may be from what the accelerator table has, which
// is what an engine sees of it.
const memoryShare = 0.05

// compare holds devices against the accelerator of the study. A part of a device, which the
// study named, is another thing than the whole, and no table has it: that is said.
func (m machine) compare(picked []hardware.Found) error {
	for i, f := range picked {
		if f.Name != "" && !m.Accelerator.Named(f.Name) {
			return m.mismatch("device %d of %s is %s, and the study says %s", f.Index, m.where, f.Name, m.Accelerator.Title)
		}
		if len(f.Parts) > 0 {
			return m.mismatch("device %d of %s (%s) is divided by MIG into %s, and an engine gets one part alone: name parts under hardware.devices, by the UUIDs that nvidia-smi -L lists", f.Index, m.where, f.Name, f.Division())
		}
		gib := f.MemoryMiB / 1024
		switch other := gib > 0 && math.Abs(gib-m.Accelerator.MemoryGiB) > memoryShare*m.Accelerator.MemoryGiB; {
		case other && f.Of != "":
			m.warn("Device %s is a part of one, with %.1f GiB of its memory: predictions, and what is refused for lack of memory, are by a whole %s.", m.node.Devices[i], gib, m.Accelerator.Title)
		case other:
			return m.mismatch("device %d of %s (%s) has %.1f GiB of memory, and %s has %.1f GiB", f.Index, m.where, f.Name, gib, m.Accelerator.Title, m.Accelerator.MemoryGiB)
		}
	}
	return nil
}

// found notes what was found; the title is what all devices call themselves.
func (m machine) found(picked []hardware.Found) (title string) {
	var kinds []string
	of := map[string][]string{}
	for i, f := range picked {
		kind := strings.TrimSuffix(f.Name+", "+f.Details(), ", ")
		if of[kind] == nil {
			kinds = append(kinds, kind)
		}
		of[kind] = append(of[kind], m.node.Devices[i])
		if i == 0 {
			title = f.Name
		} else if title != f.Name {
			title = ""
		}
	}
	m.ground.kind = kindOf(picked)
	for _, kind := range kinds {
		m.ground.note("Found on %s as device %s: %s.", m.where, strings.Join(of[kind], ", "), kind)
	}
	return title
}

// kindOf is what devices are, without what may be otherwise in a moment.
func kindOf(picked []hardware.Found) string {
	var kinds []string
	for _, f := range picked {
		f.Held = 0
		if kind := strings.TrimSuffix(f.Name+", "+f.Details(), ", "); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, " and ")
}

// others says who else is on the devices, and gives what was said of each of them.
func (m machine) others(picked []hardware.Found, holders []hardware.Holder) [][]string {
	out := make([][]string, len(picked))
	for _, h := range holders {
		i := slices.IndexFunc(picked, func(f hardware.Found) bool { return f.HeldBy(h) })
		if i < 0 {
			continue
		}
		if h.Device != "" {
			h.Device = m.node.Devices[i]
		}
		m.warn("Before the first launch %s on %s: figures of this study may be of both.", h.Text(), m.where)
		for k, f := range picked {
			if k == i || f.HeldBy(h) {
				out[k] = append(out[k], h.Text())
			}
		}
	}
	return out
}

// room says which device has less memory free than vLLM, which measures it when it starts,
// insists on. Other engines take of what is free.
func (m machine) room(picked []hardware.Found, others [][]string) error {
	share := m.shareTaken()
	for i, f := range picked {
		if f.FreeMiB == nil || share == 0 || *f.FreeMiB >= share*f.MemoryMiB {
			continue
		}
		who := "what holds it is not told"
		if len(others[i]) > 0 {
			who = strings.Join(others[i], ", ")
		}
		return errors.New(redact.Text(redact.Plain(fmt.Sprintf("device %s of %s has %.1f of %.1f GiB free, and vLLM does not start with less than %.1f (gpu_memory_utilization %v): end what holds the memory (%s), or give the study a device that is free (hardware.devices), or set check: off under hardware",
			m.node.Devices[i], m.where, *f.FreeMiB/1024, f.MemoryMiB/1024, share*f.MemoryMiB/1024, share, who))))
	}
	return nil
}

// shareTaken is the least share of a device's memory that every configuration which the study
// must launch insists on: its baseline, or the list of a survey; 0 for none.
func (l *launcher) shareTaken() float64 {
	listed, err := l.Configurations()
	if err != nil {
		return 0 // the study says so when it makes them
	}
	if l.Strategy != study.Survey {
		listed = listed[:min(1, len(listed))]
	}
	least := 0.0
	for i, c := range listed {
		share := 0.0
		if c.Command.Engine == "vllm" && c.Refused == nil && c.Config.KVSpace == 0 {
			share = c.Config.MemoryShare
		}
		if least = min(least, share); i == 0 {
			least = share
		}
	}
	return least
}

// host holds a machine without accelerators against the study.
func (m machine) host(ctx context.Context) (title string, err error) {
	text, err := m.ask(ctx, "cat", "/proc/cpuinfo", "/proc/meminfo")
	if _, unreachable := errors.AsType[*deploy.InfraError](err); unreachable {
		return "", err
	}
	name, whole := hardware.ParseHost(text)
	if whole == "" {
		m.ground.note("What processors %s has is not known.", m.where)
		return "", nil
	}
	if m.Accelerator.Known() && name != "" && !m.Accelerator.Named(name) {
		return "", m.mismatch("the processors of %s are %s, and the study says %s", m.where, name, m.Accelerator.Title)
	}
	m.ground.note("Found on %s: %s.", m.where, whole)
	m.ground.kind = name
	return name, nil
}
