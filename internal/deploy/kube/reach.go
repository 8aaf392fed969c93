package kube

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// reach is how this machine gets at the ports of a pod.
type reach struct {
	mu       sync.Mutex
	forwards []*forward
}

// Forwarded reports whether the process is reached through the API server.
func (p *process) Forwarded() bool {
	p.reach.mu.Lock()
	defer p.reach.mu.Unlock()
	return len(p.reach.forwards) > 0
}

// URL is a port of the pod: at its address, where that answers from here, else through the API
// server, which is no way for a measurement.
func (p *process) URL(ctx context.Context, port int) (string, error) {
	pod, err := p.addressed(ctx)
	if err != nil {
		return "", err
	}
	way := p.Reach
	if way == "" {
		way = ReachForward
		if p.inside || answers(ctx, hostPort(pod.Status.PodIP, port)) {
			way = ReachPods
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if way == ReachPods {
		return "http://" + hostPort(pod.Status.PodIP, port), nil
	}
	why := "the addresses of pods do not answer from here"
	if p.Reach == ReachForward {
		why = "the study says so"
	}
	p.host.tell("the engine is reached by a port-forward through the API server, since " + why + ": its delay and limits are part of all figures")
	base, err := p.forward(port, pod.Status.PodIP)
	if err != nil {
		return "", p.explain(p.op+": forward a port of pod "+p.podName, err)
	}
	return base, nil
}

// Inside is a target as pods beside the engine reach it: at the address of its pod.
func (d *deployment) Inside(target string) string {
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	for _, p := range d.host.runs {
		if base, ok := p.reach.inside(target); ok {
			return base
		}
	}
	return target
}

func (r *reach) inside(target string) (base string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.forwards {
		if f.base() == target {
			return "http://" + hostPort(f.address, f.port), true
		}
	}
	return "", false
}

// addressed is the pod once it has an address, which it may get a moment after its containers run.
func (p *process) addressed(ctx context.Context) (seen, error) {
	for {
		pod, changed := p.view.pod(p.pod)
		if pod.Pod != nil && pod.Status.PodIP != "" {
			return pod, nil
		}
		select {
		case <-p.exited: // it never had one, and will not be asked
			pod.Pod = pod.DeepCopy()
			pod.Status.PodIP = "127.0.0.1"
			return pod, nil
		case <-ctx.Done():
			return pod, context.Cause(ctx)
		case <-changed:
		}
	}
}

// connectTime is how long an address may take to answer before another way is tried.
const connectTime = 3 * time.Second

// connects reports whether somebody listens at an address.
func connects(ctx context.Context, address string) bool { return knock(ctx, address) == nil }

// answers reports whether something is at an address, be it that nobody listens there yet.
func answers(ctx context.Context, address string) bool {
	err := knock(ctx, address)
	return err == nil || errors.Is(err, syscall.ECONNREFUSED)
}

func knock(ctx context.Context, address string) error {
	d := net.Dialer{Timeout: connectTime}
	c, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		c.Close()
	}
	return err
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// close ends the forwarding.
func (r *reach) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.forwards {
		f.close()
	}
}

// forward is a port of this machine that leads to one of a pod. Each connection has one of its own
// through the API server, so that the end of one is not that of others.
type forward struct {
	net.Listener
	dial func() (httpstream.Connection, error)

	address string // of the pod
	port    int
	ctx     context.Context
	cancel  context.CancelFunc
	piping  sync.WaitGroup
}

// forward begins to forward a port, once the API server has let it.
func (p *process) forward(port int, address string) (base string, err error) {
	f, err := p.forwardTo(p.podName, port, address)
	if err != nil {
		return "", err
	}
	p.reach.mu.Lock()
	defer p.reach.mu.Unlock()
	p.reach.forwards = append(p.reach.forwards, f)
	return f.base(), nil
}

// forwardTo begins to forward a port of a pod, until it is closed.
func (c *cluster) forwardTo(pod string, port int, address string) (*forward, error) {
	f := &forward{address: address, port: port, dial: func() (httpstream.Connection, error) { return c.dialPod(pod) }}
	probe, err := f.dial()
	if err != nil {
		return nil, err
	}
	probe.Close()
	if f.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.piping.Go(f.serve)
	return f, nil
}

// dialPod connects to what forwards ports of a pod. Each connection has a dialer of its own: the library's keeps the
// connection that it made last, so that two at the same time could get one.
func (c *cluster) dialPod(pod string) (httpstream.Connection, error) {
	u := c.podURL(pod, "portforward", nil)
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, c.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, "POST", u)
	conn, _, err := portforward.NewFallbackDialerForStreaming(socket, older, oldServer).Dial(portforward.PortForwardProtocolV1Name)
	return conn, err
}

// base is the URL on this machine.
func (f *forward) base() string { return "http://" + f.Addr().String() }

func (f *forward) close() {
	f.cancel()
	f.Listener.Close()
	f.piping.Wait()
}

func (f *forward) serve() {
	for {
		conn, err := f.Accept()
		if err != nil {
			return
		}
		f.piping.Go(func() { f.pipe(conn) })
	}
}

// pipe copies between a connection and the pod's port until either ends.
func (f *forward) pipe(conn net.Conn) {
	defer conn.Close()
	streams, err := f.dial()
	if err != nil {
		return // as a server that refuses the connection
	}
	defer streams.Close()
	head := http.Header{}
	head.Set(corev1.PortHeader, strconv.Itoa(f.port))
	head.Set(corev1.PortForwardRequestIDHeader, "0")
	head.Set(corev1.StreamType, corev1.StreamTypeError)
	faults, err := streams.CreateStream(head)
	if err != nil {
		return
	}
	faults.Close() // nothing is written there
	head.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := streams.CreateStream(head)
	if err != nil {
		return
	}
	release := context.AfterFunc(f.ctx, func() { streams.Close(); conn.Close() })
	defer release()
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(data, conn)
		data.Close()
	})
	copying.Go(func() {
		if text, _ := io.ReadAll(faults); len(text) > 0 { // nobody listens there, say
			conn.Close()
		}
	})
	_, _ = io.Copy(conn, data) // how it ended, the client sees by itself
	conn.Close()
	streams.Close()
	copying.Wait()
}
