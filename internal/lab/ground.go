package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
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
	notes []string      // what a reader must know of them, one sentence each

	indices map[string]map[string]int // of the machines' devices by the names that they are dealt by, where known
}

// look finds out what would keep every trial from starting, before the first one: devices
// that are other people's, hardware that is not what the study says, programs and models
// that are not there. Each is one sentence of the error.
func (l *launcher) look(ctx context.Context) error {
	here := l.Runtime.Kind == study.Process
	if l.Runtime.Kind == study.Docker {
		var err error
		if here, err = l.containersHere(); err != nil {
			return err
		}
	}
	var err error
	if l.ground.pool, err = l.Pool(here, os.LookupEnv); err != nil || !l.Runtime.StartsEngines() {
		return err
	}
	l.watch.change(func(s *Status) { s.Phase = "looking at the hardware" })
	wrong := l.inspect(ctx, here)
	if ctx.Err() == nil {
		l.watch.change(func(s *Status) { s.Phase = "looking for the engines" })
		wrong = append(wrong, l.absent(ctx)...)
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

// containersHere reports whether containers are given this machine's devices.
func (l *launcher) containersHere() (bool, error) {
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

// note adds what a reader must know.
func (g *ground) note(format string, args ...any) {
	g.notes = append(g.notes, redact.Text(redact.Plain(fmt.Sprintf(format, args...))))
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
		l.ground.note("The hardware was not looked at, for it is behind another Docker host that gives commands no GPU: what is said of it is what the study says.")
		return nil
	}
	var wrong []error
	var titles []string
	for _, n := range l.nodes() {
		m := machine{launcher: l, c: c, node: n, where: cmp.Or(n.Name, "this machine")}
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
	name := ""
	if served := l.Served(); len(served) > 0 { // any: they are on the same machines
		name = served[0].Engine
	}
	if l.Runtime.Kind == study.Docker {
		s := l.Container(name)
		switch {
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
	c     deploy.Commander
	node  cluster.Node
	where string // for sentences
}

// ask runs a command on the machine; a program that is not there is an ExitError of code 127.
func (m machine) ask(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("no answer after %v", askTimeout))
	defer cancel()
	var out bytes.Buffer
	err := m.c.Command(ctx, m.node.Name, append([]string{"/bin/sh", "-c", `exec "$@"`, "sh"}, argv...), &out)
	return out.String(), err
}

// inspect holds the machine against the study, and gives what its devices call themselves.
func (m machine) inspect(ctx context.Context) (title string, err error) {
	var found []hardware.Found
	var holders []hardware.Holder
	switch m.Accelerator.Platform {
	case arch.CUDA:
		found, holders, err = m.nvidia(ctx)
	case arch.ROCm:
		found, holders, err = m.amd(ctx)
	case arch.CPU:
		return m.host(ctx)
	default:
		err = errNoTool
	}
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
	picked, missing := hardware.Pick(found, names)
	if len(missing) > 0 {
		return "", m.mismatch("%s has %d of the devices, and the study uses device %s of it", m.where, len(found), strings.Join(missing, ", "))
	}
	if err := m.compare(picked); err != nil {
		return "", err
	}
	indices := map[string]int{}
	for i, d := range m.node.Devices {
		indices[d] = picked[i].Index
	}
	m.ground.indices[m.node.Name] = indices
	return m.tell(picked, holders), nil
}

// errNoTool is of a platform whose tool is not asked.
var errNoTool = errors.New("nothing tells of devices of this kind")

func (m machine) nvidia(ctx context.Context) (found []hardware.Found, holders []hardware.Holder, err error) {
	text, err := m.ask(ctx, hardware.NVIDIA...)
	if err != nil {
		return nil, nil, err
	}
	if found, err = hardware.ParseNVIDIA(text); err != nil {
		return nil, nil, err
	}
	if text, err = m.ask(ctx, hardware.NVIDIAHolders...); err == nil {
		holders, err = hardware.ParseNVIDIAHolders(text)
	}
	if err != nil {
		m.ground.note("Other processes on the devices of %s are not known: %v.", m.where, err)
	}
	return found, holders, nil
}

func (m machine) amd(ctx context.Context) (found []hardware.Found, holders []hardware.Holder, err error) {
	text, err := m.ask(ctx, hardware.AMD...)
	if err != nil {
		return nil, nil, err
	}
	return hardware.ParseAMD(text)
}

// deviceFiles are those of a platform's devices.
var deviceFiles = map[arch.Platform]string{arch.CUDA: "/dev/nvidia[0-9]*", arch.ROCm: "/dev/kfd", arch.NPU: "/dev/davinci[0-9]*"}

// untold is for a machine whose tool does not tell of the devices: where there are files of
// such devices they are believed to be what the study says, else there are none.
func (m machine) untold(ctx context.Context, why error) error {
	reason := why.Error()
	if exit, ok := errors.AsType[*deploy.ExitError](why); ok && exit.Code == 127 {
		reason = "the tool that tells of them is not there"
	}
	files := deviceFiles[m.Accelerator.Platform]
	if _, err := m.ask(ctx, "/bin/sh", "-c", "ls -d "+files); err == nil {
		m.ground.note("What devices %s has is not known (%s): what is said of them is what the study says.", m.where, reason)
		return nil
	}
	return m.mismatch("no %s is found on %s: there is no %s, and %s", m.Accelerator.Title, m.where, path.Dir(files)+"/"+strings.TrimRight(path.Base(files), "[0-9]*"), reason)
}

// mismatch is a machine that is not what the study says.
func (m machine) mismatch(format string, args ...any) error {
	return fmt.Errorf("%s: correct the study's hardware, or set check: off there", redact.Text(redact.Plain(fmt.Sprintf(format, args...))))
}

// memoryShare is how far a device's memory may be from what the accelerator table has, which
// is what an engine sees of it.
const memoryShare = 0.05

// compare holds devices against the accelerator of the study.
func (m machine) compare(picked []hardware.Found) error {
	for _, f := range picked {
		named := arch.AcceleratorsIn(f.Name)
		is := func(a arch.Accelerator) bool { return a.Name == m.Accelerator.Name }
		if f.Name != "" && !slices.ContainsFunc(named, is) {
			return m.mismatch("device %d of %s is %s, and the study says %s", f.Index, m.where, f.Name, m.Accelerator.Title)
		}
		gib := f.MemoryMiB / 1024
		if gib > 0 && math.Abs(gib-m.Accelerator.MemoryGiB) > memoryShare*m.Accelerator.MemoryGiB {
			return m.mismatch("device %d of %s (%s) has %.1f GiB of memory, and %s has %.1f GiB", f.Index, m.where, f.Name, gib, m.Accelerator.Title, m.Accelerator.MemoryGiB)
		}
	}
	return nil
}

// tell notes what was found, and who else is there; the title is what all devices call
// themselves.
func (m machine) tell(picked []hardware.Found, holders []hardware.Holder) (title string) {
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
	for _, kind := range kinds {
		m.ground.note("Found on %s as device %s: %s.", m.where, strings.Join(of[kind], ", "), kind)
	}
	for _, h := range holders {
		i := slices.IndexFunc(picked, func(f hardware.Found) bool { return f.UUID == h.Device })
		if h.Device != "" && i < 0 {
			continue
		}
		if i >= 0 {
			h.Device = m.node.Devices[i]
		}
		m.ground.note("Before the first launch %s on %s: figures of this study may be of both.", h.Text(), m.where)
	}
	return title
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
	named := arch.AcceleratorsIn(name)
	is := func(a arch.Accelerator) bool { return a.Name == m.Accelerator.Name }
	if m.Accelerator.Known() && name != "" && !slices.ContainsFunc(named, is) {
		return "", m.mismatch("the processors of %s are %s, and the study says %s", m.where, name, m.Accelerator.Title)
	}
	m.ground.note("Found on %s: %s.", m.where, whole)
	return name, nil
}
