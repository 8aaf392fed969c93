package kubetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// glance is how often a probe that has not succeeded is tried: its period only says how often
// it may fail, so that nobody waits for a start that is over.
const glance = 50 * time.Millisecond

// leastTimeout is the least time that a probe has, whatever it says: a machine that tests are
// busy on is no sign that a container is not well.
const leastTimeout = 20 * time.Second

// probe watches over a container that runs: it has started, it is ready, it lives. ctx ends
// with the container's run.
func (c *container) probe(ctx context.Context) {
	if p := c.spec.StartupProbe; p != nil && !c.await(ctx, p) {
		c.fails(ctx, "startup")
		return
	}
	c.show(ctx, func() { c.started, c.ready = true, c.spec.ReadinessProbe == nil })
	done := make(chan struct{})
	go func() {
		defer close(done)
		if p := c.spec.LivenessProbe; p != nil {
			c.hold(ctx, p)
			c.fails(ctx, "liveness")
		}
	}()
	if p := c.spec.ReadinessProbe; p != nil {
		for ctx.Err() == nil {
			c.await(ctx, p)
			c.show(ctx, func() { c.ready = true })
			c.hold(ctx, p)
			c.show(ctx, func() { c.ready = false })
		}
	}
	<-done
}

// show changes what is shown of a run that goes on.
func (c *container) show(ctx context.Context, change func()) {
	c.mu.Lock()
	if ctx.Err() == nil {
		change()
	}
	c.mu.Unlock()
	c.pod.changed()
}

// fails kills a container whose probe failed too often.
func (c *container) fails(ctx context.Context, which string) {
	if ctx.Err() != nil {
		return
	}
	c.say(corev1.EventTypeNormal, "Killing", "Container %s failed %s probe, will be restarted", c.spec.Name, which)
	c.kill()
}

// await tries a probe until it succeeds; false: it failed for as long as it may, or ctx ended.
// A probe of readiness may fail for ever.
func (c *container) await(ctx context.Context, p *corev1.Probe) bool {
	threshold, period := failures(p)
	begun, told := time.Now(), false
	for {
		err := c.try(ctx, p)
		if err == nil {
			return ctx.Err() == nil
		}
		if !told && ctx.Err() == nil {
			told = true
			c.say(corev1.EventTypeWarning, "Unhealthy", "Probe failed: %v", err)
		}
		if p != c.spec.ReadinessProbe && time.Since(begun) > time.Duration(threshold)*period {
			return false
		}
		if !sleep(ctx, glance) {
			return false
		}
	}
}

// hold tries a probe that succeeded until it fails as often as it may in a row, or ctx ends.
func (c *container) hold(ctx context.Context, p *corev1.Probe) {
	threshold, period := failures(p)
	for failed := 0; failed < threshold; {
		if !sleep(ctx, period) {
			return
		}
		if c.try(ctx, p) == nil {
			failed = 0
		} else {
			failed++
		}
	}
}

func failures(p *corev1.Probe) (threshold int, period time.Duration) {
	return max(1, int(p.FailureThreshold)), time.Duration(max(1, p.PeriodSeconds)) * time.Second
}

// try does what a probe says once.
func (c *container) try(ctx context.Context, p *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, max(leastTimeout, time.Duration(p.TimeoutSeconds)*time.Second))
	defer cancel()
	switch {
	case p.HTTPGet != nil:
		port, err := c.portOf(p.HTTPGet.Port)
		if err != nil {
			return err
		}
		return tryHTTP(ctx, p.HTTPGet, port)
	case p.Exec != nil:
		return c.exec(ctx, p.Exec.Command, nil, nil, nil)
	case p.TCPSocket != nil:
		port, err := c.portOf(p.TCPSocket.Port)
		if err != nil {
			return err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address+":"+strconv.Itoa(port))
		if err == nil {
			_ = conn.Close() // it was there
		}
		return err
	}
	return fmt.Errorf("kubetest does not know this kind of probe")
}

// tryHTTP asks a port and wants an answer below 400.
func tryHTTP(ctx context.Context, get *corev1.HTTPGetAction, port int) error {
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s:%d%s", scheme, address, port, get.Path), nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "kube-probe/kubetest")
	for _, h := range get.HTTPHeaders {
		r.Header.Set(h.Name, h.Value)
	}
	t := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	res, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", res.StatusCode)
	}
	return nil
}

// portOf is a port by its number or its name.
func (c *container) portOf(port intstr.IntOrString) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range c.spec.Ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	return strconv.Atoi(port.StrVal)
}
