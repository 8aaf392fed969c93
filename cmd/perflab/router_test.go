package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
)

// routerName is the program that stands in for vllm-router and sglang_router.launch_router in
// scripts: it tries how they are launched, and that requests pass them, not what moves between
// engines.
const routerName = "standin-router"

// routerMain sends each request to a prefill engine first, for one token, and answers with
// what a decode engine says to it.
func routerMain(args []string) int {
	flags := map[string][]string{}
	for i, a := range args {
		if strings.HasPrefix(a, "--") && i+1 < len(args) {
			flags[a] = append(flags[a], args[i+1])
		}
	}
	one := func(flag string) string { return strings.Join(flags[flag], "") }
	var decodes []*httputil.ReverseProxy
	for _, text := range flags["--decode"] {
		u, err := url.Parse(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		decodes = append(decodes, httputil.NewSingleHostReverseProxy(u))
	}
	prefills := flags["--prefill"]
	if len(prefills) == 0 || len(decodes) == 0 || one("--prometheus-port") == "" {
		fmt.Fprintf(os.Stderr, "a router needs engines of both kinds and a port for its counters: %q\n", args)
		return 2
	}
	var n atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1))
		if r.Method == http.MethodPost {
			if err := prefill(prefills[i%len(prefills)], r); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
		}
		decodes[i%len(decodes)].ServeHTTP(w, r)
	})
	l, err := net.Listen("tcp", net.JoinHostPort(one("--host"), one("--port")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("STAND-IN router before %d prefill and %d decode engines: %s\n", len(prefills), len(decodes), strings.Join(args, " "))
	fmt.Fprintln(os.Stderr, http.Serve(l, mux))
	return 1
}

// prefill asks an engine for the first token of a request, whose body stays to be read.
func prefill(base string, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return nil // no request for tokens
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if _, given := fields[key]; given {
			fields[key] = 1
		}
	}
	fields["stream"] = false
	delete(fields, "stream_options")
	if body, err = json.Marshal(fields); err != nil {
		return err
	}
	resp, err := http.Post(base+r.URL.Path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
