package hardware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"perflab/internal/doctor"
	"perflab/internal/store"
	"perflab/internal/test/browser"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/asset"
	"perflab/internal/web/hardware"
	"perflab/internal/web/page"
)

// screen serves the screen alone, over a store, with its own look at the machine.
func screen(t *testing.T, root string, look func(context.Context) ([]doctor.Accelerator, error)) string {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Roots: []string{root}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if _, err := st.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages := page.New(page.Options{Asset: asset.Path})
	s := hardware.New(hardware.Options{Pages: pages, Store: st, Look: look})
	mux := http.NewServeMux()
	for _, r := range s.Routes() {
		mux.Handle(r.Pattern, pages.Handler(r))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); s.Close() })
	return server.URL
}

func none(context.Context) ([]doctor.Accelerator, error) { return nil, nil }

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
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

// whole waits until the stream of a page says that all is there, and gets it again.
func whole(t *testing.T, base, query string) string {
	t.Helper()
	if _, events := get(t, base+"/hardware/events"+query); !strings.Contains(events, "event: end") {
		t.Fatalf("the stream is %q", events)
	}
	_, body := get(t, base+"/hardware"+query)
	if strings.Contains(body, "data-events") {
		t.Error("all is there, and the page waits for more")
	}
	return body
}

func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}

func TestPredicted(t *testing.T) {
	base := screen(t, t.TempDir(), none)
	q := query("model", "Qwen/Qwen3-8B", "gpus", "2", "input", "256", "output", "32", "slo", "p99_ttft_ms <= 500")
	body := whole(t, base, q)
	for _, text := range []string{"1 replica of 2 GPUs", "2 replicas of 1 GPU", "PREDICTED", "SIMULATED", "in flight", "GiB", "vllm serve Qwen/Qwen3-8B", "No run has measured this model", "How sure", "no accelerator"} {
		if !strings.Contains(body, text) {
			t.Errorf("no %q", text)
		}
	}
	body = whole(t, base, query("model", "meta-llama/Llama-3.1-70B-Instruct", "input", "256", "output", "32"))
	if !strings.Contains(body, "The engine would not start: ") {
		t.Error("what does not fit is not said")
	}
	config := `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`
	body = whole(t, base, query("model", "own/model", "config", config, "input", "256", "output", "32"))
	if !strings.Contains(body, "vllm serve own/model") || !strings.Contains(body, "1 replica of 1 GPU") {
		t.Errorf("a model by its numbers: %s", body[strings.Index(body, `id="answer"`):][:600])
	}
}

func TestWrong(t *testing.T) {
	base := screen(t, t.TempDir(), none)
	for q, want := range map[string]string{
		query("model", "nobody/knows"):               "unknown model",
		query("model", "Qwen/Qwen3-8B", "gpus", "x"): "is no whole number",
		query("model", "Qwen/Qwen3-8B", "gpu", "h1"): "unknown accelerator",
		query("model", "Qwen/Qwen3-8B", "slo", "x"):  "slo",
		query("q", "engin=vllm"):                     "did you mean engine?",
	} {
		if status, body := get(t, base+"/hardware"+q); status != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %q", q, status, want)
		}
	}
}

// TestMeasured: a study's runs stand with their words, and with what is predicted for them.
func TestMeasured(t *testing.T) {
	root := t.TempDir()
	storetest.Study(t, root, "study", 1, 2)
	storetest.Run{N: 3, Simulated: true, Command: "vllm serve Qwen/Qwen3-8B"}.Write(t, root, "simulated")
	body := whole(t, screen(t, root, none), "")
	for _, text := range []string{`<span class="tag sound">measured</span>`, `<span class="tag simulated">SIMULATED</span>`, "2 x NVIDIA H100 SXM on one node", "how long its requests were", "which accelerator it was is not known", "Predict others"} {
		if !strings.Contains(body, text) {
			t.Errorf("no %q", text)
		}
	}
	if strings.Index(body, "measured</span>") > strings.Index(body, "SIMULATED</span>") {
		t.Error("what was simulated stands before what was measured")
	}
}

// TestLook: a page does not wait for the tool of a device's maker, shows what it tells, and asks
// it once a minute at most.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, answer := 0, make(chan struct{})
		free := 70.0
		s := hardware.New(hardware.Options{Pages: page.New(page.Options{}), Store: nil, Look: func(ctx context.Context) ([]doctor.Accelerator, error) {
			looks++
			select {
			case <-answer:
				return []doctor.Accelerator{{Name: "NVIDIA H100", Known: []string{"h100-sxm"}, MemoryGiB: 80, FreeGiB: &free}}, errors.New("npu-smi is broken")
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}})
		first := s.LookForTest()
		if again := s.LookForTest(); again != first || first.Over() {
			t.Error("it is looked twice at once, or a look is over before the tool answers")
		}
		synctest.Wait()
		close(answer)
		synctest.Wait()
		if !first.Over() || s.LookForTest() != first || looks != 1 {
			t.Errorf("%d looks", looks)
		}
		s.Close()
	})
}

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

func TestPages(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	storetest.Study(t, root, "study", 1, 2)
	storetest.Run{N: 3, Simulated: true, Command: "vllm serve Qwen/Qwen3-8B"}.Write(t, root, "simulated")
	storetest.Run{N: 4, Model: hostile, Command: "vllm serve '" + hostile + "'"}.Write(t, root, "hostile")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	p := b.Open(t, lab.URL+"/hardware", browser.View{})
	p.Wait(`document.documentElement.dataset.ready != null`)
	p.Type("input[name=model]", "Qwen/Qwen3-8B")
	p.Press("Enter")
	p.Wait(`document.querySelector("#answer table")`) // which comes by itself
	q := query("model", "Qwen/Qwen3-8B", "gpus", "2", "input", "256", "output", "32", "slo", "p99_ttft_ms <= 500")
	whole(t, lab.URL, q)
	b.Visit(t, "hardware", lab.URL+"/hardware"+q)
}

func TestPagesEmpty(t *testing.T) {
	b := browser.Start(t)
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	whole(t, lab.URL, "")
	b.Visit(t, "hardware-empty", lab.URL+"/hardware")
}
