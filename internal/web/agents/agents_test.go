package agents_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/generator"
	"perflab/internal/test/browser"
	"perflab/internal/test/fleettest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// lab is a laboratory with a fleet, and a token for each role.
type lab struct {
	*webtest.Lab
	fleet *fleettest.Fleet
	state string
	log   *buffer
}

// buffer is a log that several write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var tokens = map[guard.Role]string{
	guard.Read:       "reading-0123456789abcdef0123456789",
	guard.Launch:     "launching-0123456789abcdef01234567",
	guard.Administer: "administering-0123456789abcdef0123",
}

func open(t *testing.T, o web.Options) *lab {
	t.Helper()
	l := &lab{fleet: fleettest.Open(t), state: t.TempDir(), log: &buffer{}}
	var lines strings.Builder
	for role, token := range tokens {
		lines.WriteString(guard.TokenLine(role.String()+"er", role, token) + "\n")
	}
	o.Guard.Tokens = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(o.Guard.Tokens, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Guard.Limits = guard.Limits{Rate: 1e6, Burst: 1e6, WrongTokens: 1e6}
	o.Roots, o.State, o.Fleet, o.Log = []string{t.TempDir()}, l.state, l.fleet.Leader, slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l.Lab = webtest.Open(t, o)
	return l
}

// ask sends a request by somebody of a role; a body that begins with { is JSON, another one a form.
func (l *lab) ask(t *testing.T, role guard.Role, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, l.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokens[role])
	if !strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// until asks for an address until its answer has all texts, while agents say that they are there: what they
// say arrives when it does.
func (l *lab) until(t *testing.T, role guard.Role, path string, agents []*fleettest.Agent, texts ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		for _, a := range agents {
			a.Here(t)
		}
		status, body := l.ask(t, role, http.MethodGet, path, "")
		missing := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return strings.Contains(body, text) })
		switch {
		case status != http.StatusOK:
			t.Fatalf("%s: %d %s", path, status, body)
		case len(missing) == 0:
			return body
		case ctx.Err() != nil:
			t.Fatalf("%s as %s never has %q:\n%s", path, role, missing, body)
		}
	}
}

// page is the screen once it has all texts.
func (l *lab) page(t *testing.T, role guard.Role, agents []*fleettest.Agent, texts ...string) string {
	t.Helper()
	return l.until(t, role, "/fleet", agents, texts...)
}

// big is an agent that says all that there is to say.
func big(name string) order.Facts {
	return order.Facts{
		Name: name, Host: generator.Host{OS: "linux", Arch: "amd64", CPUs: 64}, Memory: 256 << 30, Links: []order.Link{{Name: "eth0", Mbps: 25_000}, {Name: "ib0"}},
		GPUs: []order.GPU{{Name: "NVIDIA H100 80GB HBM3", Memory: 80 << 30}, {Name: "NVIDIA H100 80GB HBM3", Memory: 80 << 30}}, Engines: []string{"vllm 0.11.0", "sglang 0.5.3"},
		Labels: map[string]string{"rack": "7", "site": "berlin"}, Streams: 28_231,
		SelfCheck: &generator.SelfCheck{Taken: time.Now().Add(-3 * time.Hour), TTFTError: 0.012, MaxEvents: 120_000},
	}
}

func working(name string, shard int) order.Facts {
	f := big(name)
	f.Epoch, f.Doing = 12, "sends: shard 1 of 3"
	f.Work = &order.Work{State: "sends", Shard: shard, Of: 3, Who: "ada", Load: "random: 1024 tokens in, 128 out, 6000 requests, Poisson at 50 requests/s", Model: "Qwen/Qwen3-8B", Simulated: true}
	return f
}

// node is a machine that a study holds, and that keeps calls of an earlier load.
func node(name string) order.Facts {
	ended := time.Now().Add(-3 * time.Hour)
	return order.Facts{
		Name: name, Host: generator.Host{OS: "linux", Arch: "arm64", CPUs: 72}, Starts: []string{"process"},
		Held: &order.Held{Who: "ada on lab", Study: "nodes", Since: ended, Runs: []order.Engine{{Name: "replica-0", Kind: "process", Command: "vllm serve Qwen/Qwen3-8B --port 8000", Since: ended}}},
		Kept: []order.KeptLoad{{
			Load: order.Load{Epoch: 11}, Who: "grace on laptop", Shard: 1, Of: 2, Calls: 65432, Bytes: 7 << 20, Ended: ended, Until: ended.Add(14 * 24 * time.Hour),
			What: "random: 1024 tokens in, 128 out, 6000 requests", Model: "Qwen/Qwen3-8B", Simulated: true,
		}},
	}
}

func TestShown(t *testing.T) {
	l := open(t, web.Options{})
	idle, busy := l.fleet.Join(t, big("load-1")), l.fleet.Join(t, working("load-2", 1))
	l.fleet.Join(t, order.Facts{Name: "silent"})
	gpu := l.fleet.Join(t, node("gpu-1"))
	small := l.fleet.Join(t, order.Facts{Name: "laptop", Streams: 1000, Version: "v0.0.1-other", Kept: []order.KeptLoad{{Load: order.Load{Epoch: 9}, Who: "ada", Of: 2, Calls: 1234, Bytes: 3 << 20}}})
	busy.Live(t, order.Progress{Sent: 4321, InFlight: 17, Tokens: 5})
	for _, role := range []guard.Role{guard.Read, guard.Launch, guard.Administer} {
		body := l.page(t, role, []*fleettest.Agent{idle, busy, small, gpu},
			"4 agents: 2 idle, 1 at work, 1 held by studies.", "hold 28,231 streams at once and take in 84,000 tokens/s", "64 CPUs, 256 GiB, linux/amd64", "2 x NVIDIA H100 80GB HBM3, 80 GiB", "vllm 0.11.0, sglang 0.5.3",
			"eth0 25 Gbit/s, ib0", "28,231 streams", "rack=7", "120,000 events/s", "mean TTFT off by 0.012 ms, checked 3 hours ago", "Load 12, for ada", "SIMULATED", "Poisson at 50 requests/s, to Qwen/Qwen3-8B",
			"2 of 3", "1 of its 3 parts go on", ">4,321<", ">17<", "not chosen for loads", "held by ada on lab for study nodes, since", "runs replica-0 (process): vllm serve Qwen/Qwen3-8B", "keeps 1234 calls of load 9", "perflab fleet calls --fetch 9", ">3.0<", "silent", "connected, and says nothing")
		may := role == guard.Administer
		if strings.Contains(body, "/fleet/invite") != may || strings.Contains(body, "/fleet/remove/") != may {
			t.Errorf("%s: what administers is shown, or is not", role)
		}
	}
}

func TestNoFleet(t *testing.T) {
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/fleet": {http.StatusOK, "perflab serve --fleet :7422"}, "/fleet/events": {http.StatusNotFound, "this server has no fleet"},
		"/fleet/remove/x": {http.StatusNotFound, "this server has no fleet"}, "/api/v1/fleet": {http.StatusNotFound, "Start it with --fleet"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, lab.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || !strings.Contains(string(b), want.text) {
			t.Errorf("%s: %d, %v: no %q in %.300s", path, resp.StatusCode, err, want.text, b)
		}
	}
}

// events are what a stream says, an event at a time.
func (l *lab) events(t *testing.T, path string) (next func() (kind, data string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokens[guard.Read])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() (kind, data string) {
		for lines.Scan() {
			name, text, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case name == "event":
				kind = text
			case name == "data":
				data = text
			case lines.Text() == "" && kind != "":
				return kind, data
			}
		}
		t.Fatalf("the stream ends: %v", lines.Err())
		return "", ""
	}
}

var shape = regexp.MustCompile(`/fleet/events\?at=([0-9a-f]+)`)

// TestEvents: figures come as they change, and a page is drawn anew when an agent comes.
func TestEvents(t *testing.T) {
	l := open(t, web.Options{})
	a := l.fleet.Join(t, working("load-1", 0))
	body := l.page(t, guard.Read, []*fleettest.Agent{a}, "load-1", "Load 12")
	at := shape.FindStringSubmatch(body)
	if at == nil {
		t.Fatal("the page follows nothing")
	}
	next, second := l.events(t, "/fleet/events?at="+at[1]), l.events(t, "/fleet/events?at=other")
	for sent := int64(10); ; sent++ {
		a.Here(t)
		a.Live(t, order.Progress{Sent: sent})
		kind, data := next()
		if kind == "reload" {
			t.Error("the page is as it was, and is drawn anew")
		}
		var cells map[string]string
		if err := json.Unmarshal([]byte(data), &cells); err != nil {
			t.Fatal(err)
		}
		if text := cells["all.12.sent"]; text != "" && text != "-" {
			if cells["part."+a.ID+".sent"] != text {
				t.Errorf("%q", cells)
			}
			break
		}
	}
	for kind := ""; kind != "reload"; {
		a.Here(t)
		kind, _ = second()
	}
	a.Facts = big("load-1")
	for kind := ""; kind != "reload"; {
		a.Here(t)
		kind, _ = next()
	}
	l.page(t, guard.Read, []*fleettest.Agent{a}, "1 agent: 1 idle")
}

var command = regexp.MustCompile(`perflab agent --join &#39;(perflab://[^&]+)&#39;`)

func TestInvite(t *testing.T) {
	l := open(t, web.Options{})
	form := url.Values{"host": {"localhost"}, "lasts": {"15m"}}.Encode()
	for _, role := range []guard.Role{guard.Read, guard.Launch} {
		if status, body := l.ask(t, role, http.MethodPost, "/fleet/invite", form); status != http.StatusForbidden || strings.Contains(body, "perflab://") {
			t.Errorf("%s: %d %s", role, status, body)
		}
		if status, body := l.ask(t, role, http.MethodPost, "/api/v1/fleet/invitations", `{}`); status != http.StatusForbidden || strings.Contains(body, "perflab://") {
			t.Errorf("%s: %d %s", role, status, body)
		}
	}
	status, body := l.ask(t, guard.Administer, http.MethodPost, "/fleet/invite", form)
	found := command.FindStringSubmatch(body)
	if status != http.StatusOK || found == nil {
		t.Fatalf("%d %s", status, body)
	}
	status, body = l.ask(t, guard.Administer, http.MethodPost, "/api/v1/fleet/invitations", `{"host": "127.0.0.1", "lasts_s": 60}`)
	var i fleet.Invitation
	if err := json.Unmarshal([]byte(body), &i); err != nil || status != http.StatusOK || time.Until(i.Until) > time.Minute {
		t.Fatalf("%d %s", status, body)
	}
	for n, join := range []string{found[1], i.URL} {
		if _, err := bus.Join(t.Context(), join, t.TempDir(), "new"); err != nil {
			t.Errorf("invitation %d: %v", n, err)
		}
		if _, err := bus.Join(t.Context(), join, t.TempDir(), "thief"); err == nil {
			t.Errorf("invitation %d lets a second machine in", n)
		}
		_, token, _ := strings.Cut(join, "#")
		token, _, _ = strings.Cut(token, ".")
		l.nowhere(t, token)
	}
	for body, want := range map[string]string{
		`{"host": "lab:7422"}`: "without a port", `{"host": "a'; reboot '"}`: "no name", `{"lasts_s": -1}`: "30 days", `{"lasts_s": 1e9}`: "30 days", `{"hosts": ""}`: "unknown field",
	} {
		if status, got := l.ask(t, guard.Administer, http.MethodPost, "/api/v1/fleet/invitations", body); status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
	// Who pastes a join command where a host is asked for leaves no token anywhere either.
	const pasted = "QzNkZ2hqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODk"
	if status, _ := l.ask(t, guard.Administer, http.MethodPost, "/fleet/invite", url.Values{"host": {"perflab://h:1/#" + pasted}, "lasts": {"1h"}}.Encode()); status != http.StatusBadRequest {
		t.Errorf("a join URL as a host: %d", status)
	}
	l.nowhere(t, pasted)
	if status, body := l.ask(t, guard.Administer, http.MethodPost, "/fleet/invite", "lasts=long"); status != http.StatusBadRequest || !strings.Contains(body, "a time like 1h") {
		t.Errorf("%d %s", status, body)
	}
	if _, log := l.ask(t, guard.Administer, http.MethodGet, "/api/v1/audit?action=invite+to+the+fleet", ""); strings.Count(log, `"object":"localhost"`) != 1 || strings.Count(log, `"object":"127.0.0.1"`) != 1 || strings.Count(log, `"action"`) != 2 {
		t.Errorf("the audit log: %s", log)
	}
}

// nowhere fails where a secret is in a log, or in a file of the server.
func (l *lab) nowhere(t *testing.T, secret string) {
	t.Helper()
	if len(secret) < 20 || strings.Contains(l.log.String(), secret) {
		t.Errorf("the log has %q", secret)
	}
	err := filepath.WalkDir(l.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), secret) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	l := open(t, web.Options{})
	a, b := l.fleet.Join(t, working("load-1", 0)), l.fleet.Join(t, order.Facts{Name: "load-2"})
	for _, role := range []guard.Role{guard.Read, guard.Launch} {
		for path, method := range map[string]string{"/fleet/remove/" + a.ID: http.MethodPost, "/api/v1/fleet/agents/" + a.ID: http.MethodDelete} {
			if status, _ := l.ask(t, role, method, path, ""); status != http.StatusForbidden {
				t.Errorf("%s, %s: %d", role, path, status)
			}
		}
	}
	l.until(t, guard.Administer, "/fleet/remove/"+a.ID, []*fleettest.Agent{a}, "Remove load-1?", "the run becomes partial")
	if _, body := l.ask(t, guard.Administer, http.MethodPost, "/fleet/remove/"+a.ID, ""); strings.Contains(body, "load-1") {
		t.Errorf("it is there: %s", body)
	}
	if status, body := l.ask(t, guard.Administer, http.MethodDelete, "/api/v1/fleet/agents/"+b.ID, ""); status != http.StatusOK || !strings.Contains(body, b.ID) {
		t.Errorf("%d %s", status, body)
	}
	for path, method := range map[string]string{"/fleet/remove/" + a.ID: http.MethodPost, "/fleet/remove/x": http.MethodGet, "/api/v1/fleet/agents/" + b.ID: http.MethodDelete} {
		if status, body := l.ask(t, guard.Administer, method, path, ""); status != http.StatusNotFound || !strings.Contains(body, "no such member") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if _, log := l.ask(t, guard.Administer, http.MethodGet, "/api/v1/audit?action=remove+from+the+fleet", ""); !strings.Contains(log, a.ID) || !strings.Contains(log, b.ID) || strings.Count(log, `"action"`) != 2 {
		t.Errorf("the audit log: %s", log)
	}
}

func TestReadOnly(t *testing.T) {
	l := open(t, web.Options{ReadOnly: true})
	a := l.fleet.Join(t, order.Facts{Name: "load-1"})
	if body := l.page(t, guard.Administer, []*fleettest.Agent{a}, "1 agent: 1 idle"); strings.Contains(body, "/fleet/invite") || strings.Contains(body, "/fleet/remove") {
		t.Error("a server that only reads offers to change the fleet")
	}
	for path, method := range map[string]string{
		"/fleet/invite": http.MethodPost, "/fleet/remove/" + a.ID: http.MethodPost, "/api/v1/fleet/invitations": http.MethodPost, "/api/v1/fleet/agents/" + a.ID: http.MethodDelete,
	} {
		body := ""
		if strings.HasSuffix(path, "invitations") {
			body = "{}"
		}
		if status, body := l.ask(t, guard.Administer, method, path, body); status != http.StatusForbidden || !strings.Contains(body, "changes nothing") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if ms := l.fleet.Hub.Members(); len(ms) != 1 || ms[0].Revoked {
		t.Errorf("%+v", ms)
	}
}

func TestAPI(t *testing.T) {
	l := open(t, web.Options{})
	a := l.fleet.Join(t, working("load-1", 2))
	l.fleet.Join(t, order.Facts{Name: "silent"})
	body := l.until(t, guard.Read, "/api/v1/fleet", []*fleettest.Agent{a}, `"loads":[{"epoch":12`, `"idle":{"agents":0}`)
	var st fleet.Standing
	if err := json.Unmarshal([]byte(body), &st); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if len(st.Agents) != 1 || st.Agents[0].Facts.Labels["rack"] != "7" || len(st.Away) != 1 || len(st.Loads) != 1 || st.Loads[0].Parts[0].Shard != 2 || st.Loads[0].Pace != nil {
		t.Errorf("%s", body)
	}
	for _, zero := range []string{`"sent":0`, `"joined":"0001`, `null`} {
		if strings.Contains(body, zero) {
			t.Errorf("what is not known is %s: %s", zero, body)
		}
	}
}

// hostile is an agent whose every text shall break the page.
func hostile() order.Facts {
	f := working(webtest.Bad+strings.Repeat("long ", 100), 0)
	f.Engines, f.Labels = []string{webtest.Bad}, map[string]string{}
	f.Host.OS, f.Host.Arch, f.Doing = webtest.Bad, webtest.Bad, webtest.Bad
	f.Links, f.GPUs = []order.Link{{Name: webtest.Bad}}, []order.GPU{{Name: webtest.Bad}}
	f.Work.State, f.Work.Who, f.Work.Load, f.Work.Model = webtest.Bad, webtest.Bad, webtest.Bad, webtest.Bad
	for range 40 {
		f.Labels[webtest.Bad+strings.Repeat("x", len(f.Labels))] = strings.Repeat("wide", 50)
	}
	f.SelfCheck.Taken = time.Time{}
	f.Held = &order.Held{Who: webtest.Bad, Study: webtest.Bad, Runs: []order.Engine{{Name: webtest.Bad, Kind: webtest.Bad, Command: webtest.Bad + strings.Repeat("long ", 40)}}}
	f.Kept = []order.KeptLoad{{Load: order.Load{Epoch: 3}, Who: webtest.Bad, What: webtest.Bad + strings.Repeat("kept ", 60)}}
	return f
}

func TestHostile(t *testing.T) {
	l := open(t, web.Options{})
	a := l.fleet.Join(t, order.Facts{Name: webtest.Bad})
	a.Facts = hostile()
	a.Facts.Version = webtest.Bad
	body := l.page(t, guard.Administer, []*fleettest.Agent{a}, "load 12", "and 24 more")
	for _, bad := range []string{"<script>alert", "<img src=x", "\x1b", "\u202e"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if strings.Contains(body, strings.Repeat("long ", 21)) || strings.Contains(body, strings.Repeat("kept ", 41)) {
		t.Error("what an agent says of itself is not cut")
	}
	if status, body := l.ask(t, guard.Administer, http.MethodGet, "/fleet/remove/"+a.ID, ""); status != http.StatusOK || strings.Contains(body, "<script>alert") {
		t.Errorf("%d %s", status, body)
	}
}

// TestPages looks at the screen: with agents, a load, members that are away, with hostile texts, empty,
// and without a fleet.
func TestPages(t *testing.T) {
	b := browser.Start(t)
	f := fleettest.Open(t)
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}, Fleet: f.Leader, Guard: guard.Options{Limits: guard.Limits{Rate: 1e6, Burst: 1e6}}})
	b.Visit(t, "fleet-empty", lab.URL+"/fleet")
	agents := []*fleettest.Agent{f.Join(t, big("load-1")), f.Join(t, working("load-2", 0)), f.Join(t, working("load-3", 1)), f.Join(t, node("gpu-node"))}
	f.Join(t, order.Facts{Name: "switched-off"}).Leave()
	stop := going(t, agents)
	p := b.Open(t, lab.URL+"/fleet", browser.View{})
	p.Wait(`document.querySelector("[data-live-state]").dataset.state === "open"`)
	p.Wait(`document.querySelectorAll("#agents tbody tr").length === 4`)
	p.Wait(`Number(document.querySelector("#loads tfoot .n").textContent.replaceAll(",", "")) > 100`)
	b.Visit(t, "fleet", lab.URL+"/fleet")
	p.Type("input[name=host]", "lab.example.org")
	p.Click("text=Make the join command")
	p.Wait(`document.querySelector("h1").textContent === "Invitation to the fleet" && document.querySelector("button.copy")`)
	p.Picture("fleet-invited")
	p.Accessible()
	p.Sound()
	p.Click("text=Back to the fleet")
	p.Wait(`document.querySelectorAll("#agents tbody tr").length === 4`)
	p.Click("[aria-label='Remove gpu-node']")
	p.Wait(`document.querySelector("h1").textContent === "Remove gpu-node?"`)
	p.Accessible()
	p.Picture("fleet-remove")
	p.Click("text=Remove from the fleet")
	p.Wait(`document.querySelectorAll("#agents tbody tr").length === 3`)
	stop()
	agents[0].Facts = hostile()
	stop = going(t, agents[:1])
	p.Wait(`document.querySelector("#agents").textContent.includes("and 24 more")`)
	b.Visit(t, "fleet-hostile", lab.URL+"/fleet")
	stop()
	none := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	b.Visit(t, "fleet-none", none.URL+"/fleet")
}

// going has agents say that they are there and how far they are, until stop is called. One that was
// removed says nothing more.
func going(t *testing.T, agents []*fleettest.Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for k, a := range agents {
		wait.Go(func() {
			every := time.NewTicker(250 * time.Millisecond)
			defer every.Stop()
			for n := int64(1); ; n++ {
				ok := a.Say(order.Here, a.Facts)
				if a.Facts.Epoch > 0 {
					ok = a.Say(order.Of(order.Live, a.Facts.Epoch), order.Progress{Sent: 100 + 12*n, InFlight: 30 + n%5 + int64(k), Tokens: 1500 * n * int64(k+1)}) && ok
				}
				if !ok {
					return
				}
				select {
				case <-ctx.Done():
					return
				case <-every.C:
				}
			}
		})
	}
	stop = func() { cancel(); wait.Wait() }
	t.Cleanup(stop)
	return stop
}
