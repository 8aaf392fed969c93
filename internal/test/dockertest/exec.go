package dockertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
)

// session is a command that is run in a container.
type session struct {
	id  string
	box *box

	Cmd, Env   []string
	WorkingDir string
	Tty        bool

	mu   sync.Mutex
	conn io.Closer
	pid  int
	done bool
	code int
}

func (e *Engine) createExec(w http.ResponseWriter, r *http.Request, b *box) error {
	s := &session{id: newID(), box: b}
	if err := json.NewDecoder(r.Body).Decode(s); err != nil {
		return errorf(http.StatusBadRequest, "%v", err)
	}
	if !b.runs() {
		return errorf(http.StatusConflict, "container %s is not running", b.id)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.execs[s.id] = s
	writeJSON(w, http.StatusCreated, map[string]string{"Id": s.id})
	return nil
}

func (e *Engine) routeExec(w http.ResponseWriter, r *http.Request, id, verb string) error {
	e.mu.Lock()
	s := e.execs[id]
	e.mu.Unlock()
	if s == nil {
		return errorf(http.StatusNotFound, "No such exec instance: %s", id)
	}
	switch verb {
	case "start":
		return s.start(w, r)
	case "json":
		s.mu.Lock()
		defer s.mu.Unlock()
		writeJSON(w, http.StatusOK, map[string]any{"ID": s.id, "ContainerID": s.box.id, "Running": s.pid != 0 && !s.done, "ExitCode": s.code, "Pid": s.pid})
	case "resize":
		w.WriteHeader(http.StatusOK)
	default:
		return errorf(http.StatusNotFound, "page not found")
	}
	return nil
}

// start runs the command with the connection as its streams.
func (s *session) start(w http.ResponseWriter, r *http.Request) error {
	if _, err := io.Copy(io.Discard, r.Body); err != nil { // else it would be the command's input
		return errorf(http.StatusBadRequest, "%v", err)
	}
	if !s.box.runs() {
		return errorf(http.StatusConflict, "container %s is not running", s.box.id)
	}
	cmd, err := s.box.command(s.Cmd, append(s.box.Env, s.Env...), s.WorkingDir)
	c, hijacked := hijack(w)
	if hijacked != nil {
		return hijacked
	}
	s.mu.Lock()
	s.conn = c
	s.mu.Unlock()
	s.box.engine.work.Go(func() {
		defer c.Close()
		out := newOutput()
		var sending sync.WaitGroup
		sending.Go(func() { _ = out.copyTo(c, nil, true) }) // the client has gone
		code := 127
		if err != nil {
			fmt.Fprintf(out.stream(1), "OCI runtime exec failed: exec failed: unable to start container process: %v: unknown\r\n", err)
		} else {
			code = s.run(cmd, c, out)
		}
		s.mu.Lock()
		s.done, s.code = true, code
		s.mu.Unlock()
		out.close()
		sending.Wait()
	})
	return nil
}

// run is the life of the command. What it left behind with its output does not hold it up.
func (s *session) run(cmd *exec.Cmd, from io.Reader, out *output) (code int) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return 126
	}
	var copying sync.WaitGroup
	var ours []*os.File
	for i, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return 126
		}
		ours, *to = append(ours, w), w
		copying.Go(func() {
			defer r.Close()
			_, _ = io.Copy(out.stream(byte(i+1)), r) // it ends with its writers
		})
	}
	err = cmd.Start()
	for _, w := range ours {
		w.Close()
	}
	if err != nil {
		copying.Wait()
		return 126
	}
	s.mu.Lock()
	s.pid = cmd.Process.Pid
	s.mu.Unlock()
	go func() {
		_, _ = io.Copy(in, from) // until the client closes its side, or is gone
		in.Close()
	}()
	state, _ := cmd.Process.Wait()
	copying.Wait()
	return exitCode(state)
}

// hangUp closes the connection; the command runs on.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
	}
}
