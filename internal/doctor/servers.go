package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"perflab/internal/engine"
	"perflab/internal/openai"
)

// Server is one that answers on this machine.
type Server struct {
	URL       string   `json:"url"`
	Models    []string `json:"models,omitempty"`
	Engine    string   `json:"engine,omitempty"`  // in the catalogue, where it says so
	Version   string   `json:"version,omitempty"` // by its own account
	Simulated bool     `json:"simulated,omitempty"`
	Note      string   `json:"note,omitempty"` // why it tells no models
}

// usualPort is where servers of several kinds listen, llama-server before its build b11521 too.
const usualPort = 8080

// ports are those that engines listen on unless they are told otherwise.
func ports() []int {
	out := []int{usualPort}
	for _, e := range engine.All() {
		if !slices.Contains(out, e.DefaultPort) {
			out = append(out, e.DefaultPort)
		}
	}
	slices.Sort(out)
	return out
}

func lookServers(ctx context.Context, p Probes) (func(*Report), error) {
	all := ports()
	found := make([]*Server, len(all))
	var wait sync.WaitGroup
	for i, port := range all {
		wait.Go(func() {
			url := fmt.Sprintf("http://127.0.0.1:%d", port)
			info, err := p.Ask(ctx, url)
			found[i] = server(url, info, err)
		})
	}
	wait.Wait()
	return func(r *Report) {
		for _, s := range found {
			if s != nil {
				r.Servers = append(r.Servers, *s)
			}
		}
	}, nil
}

// server is what answered, nil where nothing did.
func server(url string, info openai.Info, err error) *Server {
	s := &Server{URL: url, Models: info.Models, Engine: owners[info.Owner], Version: info.Version, Simulated: info.Simulated, Note: info.Note}
	e, says := errors.AsType[*openai.EndpointError](err)
	switch {
	case err == nil:
		return s
	case !says || e.Err != nil: // nothing listens, or it is silent
		return nil
	}
	s.Note = strings.TrimPrefix(e.Text, url)
	if hint := e.Hint(); hint != "" {
		s.Note += ": " + hint
	}
	s.Note = strings.TrimSpace(s.Note)
	return s
}

// owners are how engines say who they are in their list of models.
var owners = map[string]string{"vllm": "vllm", "sglang": "sglang", "tensorrt_llm": "trtllm", "llamacpp": "llamacpp"}
