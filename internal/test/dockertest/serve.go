package dockertest

import (
	"archive/tar"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
)

// Versions of the API that the stand-in says it speaks.
const (
	apiVersion    = "1.47"
	minAPIVersion = "1.24"
)

var versioned = regexp.MustCompile(`^/v\d+\.\d+(/.*)$`)

// serve answers one request.
func (e *Engine) serve(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Path
	if g := versioned.FindStringSubmatch(p); g != nil {
		p = g[1]
	}
	e.mu.Lock()
	e.requests = append(e.requests, r.Method+" "+p)
	fail := e.fail
	e.mu.Unlock()
	w.Header().Set("Api-Version", apiVersion)
	w.Header().Set("Ostype", "linux")
	if fail != nil {
		if status, message := fail(r.Method, p); status != 0 {
			writeJSON(w, status, map[string]string{"message": message})
			return
		}
	}
	err := e.route(w, r, p)
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	if a, ok := errors.AsType[*apiError](err); ok {
		status = a.status
	}
	writeJSON(w, status, map[string]string{"message": err.Error()})
}

// route finds what answers a path.
func (e *Engine) route(w http.ResponseWriter, r *http.Request, p string) error {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case p == "/_ping":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "OK") // the client has gone
		return nil
	case p == "/version":
		writeJSON(w, http.StatusOK, map[string]any{"Version": "27.0.0", "ApiVersion": apiVersion, "MinAPIVersion": minAPIVersion, "Os": "linux", "Arch": "amd64"})
		return nil
	case p == "/info":
		writeJSON(w, http.StatusOK, map[string]any{"ServerVersion": "27.0.0", "Runtimes": map[string]any{"runc": map[string]any{"path": "runc"}, "nvidia": map[string]any{"path": "nvidia-container-runtime"}}})
		return nil
	case p == "/images/create":
		return e.pull(w, r)
	case parts[0] == "images" && last == "json":
		return e.inspectImage(w, strings.TrimSuffix(strings.TrimPrefix(p, "/images/"), "/json"))
	case p == "/containers/json":
		return e.list(w, r)
	case p == "/containers/create":
		return e.createContainer(w, r)
	case parts[0] == "exec" && len(parts) == 3:
		return e.routeExec(w, r, parts[1], last)
	case parts[0] == "containers" && len(parts) <= 3:
		b, err := e.find(parts[1])
		if err != nil {
			return err
		}
		if r.Method == http.MethodDelete {
			return e.removeContainer(w, r, b)
		}
		return e.routeContainer(w, r, b, last)
	}
	return errorf(http.StatusNotFound, "page not found")
}

func (e *Engine) routeContainer(w http.ResponseWriter, r *http.Request, b *box, verb string) error {
	q := r.URL.Query()
	switch verb {
	case "json":
		writeJSON(w, http.StatusOK, b.inspect())
	case "start":
		if err := b.start(); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
	case "kill":
		if !b.signal(q.Get("signal")) {
			return errorf(http.StatusConflict, "cannot kill container: %s: container %s is not running", b.id, b.id)
		}
		w.WriteHeader(http.StatusNoContent)
	case "stop":
		b.stop(q.Get("t"))
		w.WriteHeader(http.StatusNoContent)
	case "wait":
		return b.wait(w, r, q.Get("condition"))
	case "logs":
		return b.logs(w, r, q.Get("follow") == "1")
	case "attach":
		return b.attach(w, r)
	case "archive":
		return b.extract(r.Body, q.Get("path"))
	case "exec":
		return e.createExec(w, r, b)
	case "resize":
		w.WriteHeader(http.StatusOK)
	default:
		return errorf(http.StatusNotFound, "page not found")
	}
	return nil
}

// pull tells the progress of a pull as the daemon does, two layers of it.
func (e *Engine) pull(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	name := strings.TrimPrefix(strings.TrimPrefix(q.Get("fromImage"), "docker.io/"), "library/")
	ref := name + ":" + q.Get("tag")
	if strings.HasPrefix(q.Get("tag"), "sha256:") {
		ref = name + "@" + q.Get("tag")
	}
	e.mu.Lock()
	im := e.lookup(ref)
	e.mu.Unlock()
	if im == nil && !e.hasRepository(name) {
		return errorf(http.StatusNotFound, "pull access denied for %s, repository does not exist or may require 'docker login': denied: requested access to the resource is denied", name)
	}
	if im == nil {
		return errorf(http.StatusNotFound, "manifest for %s not found: manifest unknown: manifest unknown", ref)
	}
	if im.Login != "" && im.Login != login(r.Header.Get("X-Registry-Auth")) {
		return errorf(http.StatusInternalServerError, "Head \"https://registry.invalid/v2/%s/manifests/%s\": unauthorized: authentication required", name, q.Get("tag"))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	type detail struct {
		Current int64 `json:"current,omitempty"`
		Total   int64 `json:"total,omitempty"`
	}
	say := func(id, status string, d detail) {
		_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "status": status, "progressDetail": d}) // the client has gone
		w.(http.Flusher).Flush()
	}
	say(q.Get("tag"), "Pulling from "+name, detail{})
	for _, l := range []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"} {
		say(l, "Pulling fs layer", detail{})
	}
	for _, l := range []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"} {
		say(l, "Downloading", detail{1 << 29, 1 << 30})
		say(l, "Download complete", detail{})
		say(l, "Pull complete", detail{})
	}
	_, digest, _ := strings.Cut(im.digest, "@")
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "Digest: " + digest}) // the client has gone
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "Status: Downloaded newer image for " + ref})
	e.mu.Lock()
	im.Remote = false
	e.mu.Unlock()
	return nil
}

func (e *Engine) hasRepository(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ref := range e.images {
		if repository(ref) == name {
			return true
		}
	}
	return false
}

// lookup finds an image by name, id or digest.
func (e *Engine) lookup(ref string) *stored {
	for name, im := range e.images {
		if name == ref || name == ref+":latest" || im.id == ref || im.digest == ref {
			return im
		}
	}
	return nil
}

// login is the user and password of an X-Registry-Auth header.
func login(header string) string {
	b, err := base64.URLEncoding.DecodeString(header)
	var a struct{ Username, Password string }
	if err != nil || json.Unmarshal(b, &a) != nil {
		return ""
	}
	return a.Username + ":" + a.Password
}

func (e *Engine) inspectImage(w http.ResponseWriter, ref string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	im := e.lookup(ref)
	if im == nil || im.Remote {
		return errorf(http.StatusNotFound, "No such image: %s", ref)
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"Id": im.id, "RepoTags": []string{im.Ref}, "RepoDigests": []string{im.digest}, "Os": "linux", "Architecture": "amd64",
		"Config": map[string]any{"Entrypoint": im.Entrypoint, "StopSignal": im.StopSignal},
	})
	return nil
}

func (e *Engine) createContainer(w http.ResponseWriter, r *http.Request) error {
	var body createBody
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err == nil {
		err = json.Unmarshal(raw, &body.all)
	}
	if err != nil {
		return errorf(http.StatusBadRequest, "%v", err)
	}
	b, err := e.create(r.URL.Query().Get("name"), body)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, map[string]any{"Id": b.id, "Warnings": []string{}})
	return nil
}

// create makes a container of an image that is here.
func (e *Engine) create(name string, body createBody) (*box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	im := e.lookup(body.Image)
	if im == nil || im.Remote {
		return nil, errorf(http.StatusNotFound, "No such image: %s", body.Image)
	}
	for _, b := range e.containers {
		if name != "" && b.name == name {
			return nil, errorf(http.StatusConflict, "Conflict. The container name %q is already in use by container %q. You have to remove (or rename) that container to be able to reuse that name.", "/"+name, b.id)
		}
	}
	if body.Entrypoint == nil {
		body.Entrypoint = im.Entrypoint
	}
	b := newBox(e, name, body, im)
	e.containers[b.id] = b
	return b, nil
}

// find finds a container by id, part of an id, or name.
func (e *Engine) find(name string) (*box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, b := range e.containers {
		if strings.HasPrefix(id, name) || b.name == name {
			return b, nil
		}
	}
	return nil, errorf(http.StatusNotFound, "No such container: %s", name)
}

func (e *Engine) removeContainer(w http.ResponseWriter, r *http.Request, b *box) error {
	if b.runs() && r.URL.Query().Get("force") != "1" {
		return errorf(http.StatusConflict, "cannot remove container %q: container is running: stop the container before removing or force remove", "/"+b.name)
	}
	b.killAll()
	e.forget(b)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (e *Engine) forget(b *box) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.containers, b.id)
}

func (e *Engine) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	filters, err := readFilters(q)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.containers {
		if (q.Get("all") == "1" || b.runs()) && b.matches(filters["label"]) {
			out = append(out, b.summary())
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// readFilters reads {"label": {"a=b": true}}.
func readFilters(q url.Values) (map[string]map[string]bool, error) {
	f := map[string]map[string]bool{}
	if text := q.Get("filters"); text != "" {
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return nil, errorf(http.StatusBadRequest, "invalid filter: %v", err)
		}
	}
	return f, nil
}

// extract keeps the files of an archive.
func (b *box) extract(body io.Reader, at string) error {
	for r := tar.NewReader(body); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errorf(http.StatusBadRequest, "%v", err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return errorf(http.StatusBadRequest, "%v", err)
		}
		if h.Typeflag == tar.TypeReg {
			if err := b.keep(path.Join(at, h.Name), text); err != nil {
				return err
			}
		}
	}
}

// hijack takes the connection over, as a stream in both directions.
func hijack(w http.ResponseWriter) (io.ReadWriteCloser, error) {
	h, ok := w.(http.Hijacker)
	if !ok {
		return nil, errorf(http.StatusInternalServerError, "the connection cannot be taken over")
	}
	c, buffered, err := h.Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over the connection: %w", err)
	}
	_ = c.SetDeadline(time.Time{})
	_, err = io.WriteString(c, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nApi-Version: "+apiVersion+"\r\n\r\n")
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("take over the connection: %w", err)
	}
	return struct {
		io.Reader
		io.WriteCloser
	}{buffered.Reader, c}, nil
}
