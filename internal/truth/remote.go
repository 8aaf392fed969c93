package truth

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Remote is a server as seen from outside.
type Remote struct{ URL string }

// Set gives the server new parameters; it forgets what it recorded.
func (r Remote) Set(ctx context.Context, p Params) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the truth server's parameters: %w", err)
	}
	return r.do(ctx, http.MethodPost, "/truth", bytes.NewReader(body), nil)
}

// Truth asks what the server recorded, with the time of every send if sends.
func (r Remote) Truth(ctx context.Context, sends bool) (Truth, error) {
	var t Truth
	path := "/truth"
	if sends {
		path += "?sends=1"
	}
	return t, r.do(ctx, http.MethodGet, path, nil, &t)
}

func (r Remote) do(ctx context.Context, method, path string, body io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, r.URL+path, body)
	if err != nil {
		return fmt.Errorf("ask the truth server: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("ask the truth server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // part of a message
		return fmt.Errorf("the truth server answers %d to %s %s: %s", resp.StatusCode, method, path, text)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the truth server's answer: %w", err)
	}
	return nil
}

// Main is a server process: it listens on loopback, writes its URL on a line
// of out, and serves until in ends, which it does with the process that holds
// its other end.
func Main(ctx context.Context, in io.Reader, out io.Writer, p Params) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process; a read of standard input cannot be cut short
		io.Copy(io.Discard, in)
		cancel()
	}()
	return Serve(ctx, l, p)
}

// Child is a server in a process of its own.
type Child struct {
	Remote
	cmd *exec.Cmd
	in  io.WriteCloser
}

// startLimit is how long a child may take to say its URL.
const startLimit = 20 * time.Second

// Start starts a process that runs Main, on these CPUs alone if any are named.
// It ends when Close is called or this process ends.
func Start(cmd *exec.Cmd, cpus []int) (*Child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the truth server: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the truth server: %w", err)
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := StartOn(cmd, cpus); err != nil {
		return nil, fmt.Errorf("start the truth server: %w", err)
	}
	c := &Child{cmd: cmd, in: in}
	timer := time.AfterFunc(startLimit, func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	timer.Stop()
	if err != nil {
		return nil, errors.Join(errors.New("the truth server ended before it listened"), c.Close())
	}
	c.URL = strings.TrimSpace(line)
	return c, nil
}

// Close ends the server.
func (c *Child) Close() error {
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the truth server: %w", err)
	}
	return nil
}
