package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// paths answers what it has and 404 to the rest; asked gets "METHOD path body"
// of each question.
func paths(asked *[]string, answers map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		a, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if code, rest, has := strings.Cut(a, "!"); has {
			status := map[string]int{"400": 400, "401": 401}[code]
			w.WriteHeader(status)
			a = rest
		}
		io.WriteString(w, a)
	}
}

// hinted reports whether an error says this, with a hint that says that.
func hinted(err error, text, hint string) bool {
	e, ok := errors.AsType[*EndpointError](err)
	return ok && strings.Contains(e.Text, text) && strings.Contains(e.Do, hint)
}

func TestTokenize(t *testing.T) {
	var asked []string
	h := paths(&asked, map[string]string{"/tokenize": `{"count":3,"max_model_len":32768,"tokens":[1,22,3]}`, "/detokenize": `{"prompt":"a b"}`})
	bubble(t, Config{BaseURL: "http://engine.test/v1", Model: "m"}, h, func(t *testing.T, c *Client) {
		tok := c.Tokenizer()
		ids, err := tok.Encode("a \"b", true)
		if err != nil || !slices.Equal(ids, []int32{1, 22, 3}) {
			t.Fatalf("ids %v, error %v", ids, err)
		}
		text, err := tok.Decode([]int32{1, 22})
		if err != nil || text != "a b" {
			t.Fatalf("text %q, error %v", text, err)
		}
		want := []string{`POST /tokenize {"add_special_tokens":true,"model":"m","prompt":"a \"b"}`, `POST /detokenize {"model":"m","skip_special_tokens":true,"tokens":[1,22]}`}
		if !slices.Equal(asked, want) {
			t.Errorf("asked %q", asked)
		}
		if tok.Name() != "server http://engine.test/tokenize of m" || tok.Ordinary() != nil {
			t.Errorf("name %q, ordinary %v", tok.Name(), tok.Ordinary())
		}
	})
	bubble(t, Config{}, paths(&asked, map[string]string{"/tokenize": `{"tokens":[]}`, "/detokenize": `{"text":""}`}), func(t *testing.T, c *Client) {
		if ids, err := c.Tokenize(t.Context(), "", false); err != nil || len(ids) != 0 {
			t.Errorf("of nothing: ids %v, error %v", ids, err)
		}
		if text, err := c.Detokenize(t.Context(), nil); err != nil || text != "" {
			t.Errorf("of nothing, as SGLang says it: text %q, error %v", text, err)
		}
	})
}

func TestTokenizeRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		answer     map[string]string
		text, hint string
	}{
		"absent":  {nil, "http://engine.test has no /tokenize (404)", "use a tokenizer file"},
		"refused": {map[string]string{"/tokenize": "401!no sk-0123456789"}, "http://engine.test/tokenize answers 401: no [API key]", "OPENAI_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			bubble(t, Config{APIKey: "sk-0123456789"}, paths(&asked, tt.answer), func(t *testing.T, c *Client) {
				if _, err := c.Tokenize(t.Context(), "a", false); !hinted(err, tt.text, tt.hint) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
	for _, answer := range []string{`{"ids":[1]}`, `<html>`, `{"tokens":["a"]}`} {
		var asked []string
		bubble(t, Config{}, paths(&asked, map[string]string{"/tokenize": answer}), func(t *testing.T, c *Client) {
			if ids, err := c.Tokenize(t.Context(), "a", false); err == nil {
				t.Errorf("%s is taken for %v", answer, ids)
			}
		})
	}
}

const (
	vllmMetrics = "# HELP vllm:prefix_cache_queries_total Prefix cache queries.\n# TYPE vllm:prefix_cache_queries_total counter\n" +
		"vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"a}b \\\" c\"} 1000.0\nvllm:prefix_cache_queries_total{engine=\"1\"} 5e2\n" +
		"vllm:prefix_cache_queries_created{engine=\"0\"} 1.7e+09\n" +
		"vllm:prefix_cache_hits_total{engine=\"0\"} 250.0 1764000000000\nvllm:prefix_cache_hits_total{engine=\"1\"} 50\n"
	sglangMetrics = "sglang:prompt_tokens_total{model_name=\"m\"} 100\nsglang:cached_tokens_total{cache_source=\"device\"} 20\n" +
		"sglang:cached_tokens_total{cache_source=\"host\"} 5\nsglang:cached_tokens_total{cache_source=\"total\"} 25\n"
)

func TestCacheCounters(t *testing.T) {
	for name, tt := range map[string]struct {
		answer        map[string]string
		queries, hits float64
		from          string
		text          string // of the error
	}{
		"vLLM":                {map[string]string{"/metrics": vllmMetrics}, 1500, 300, "vllm:prefix_cache_queries, vllm:prefix_cache_hits", ""},
		"older vLLM":          {map[string]string{"/metrics": "vllm:gpu_prefix_cache_queries 8\nvllm:gpu_prefix_cache_hits 0"}, 8, 0, "vllm:gpu_prefix_cache_queries, vllm:gpu_prefix_cache_hits", ""},
		"SGLang":              {map[string]string{"/metrics": sglangMetrics}, 100, 25, "sglang:prompt_tokens, sglang:cached_tokens", ""},
		"SGLang before a hit": {map[string]string{"/metrics": "sglang:prompt_tokens_total 7\n"}, 7, 0, "sglang:prompt_tokens, sglang:cached_tokens", ""},
		"TensorRT-LLM": {map[string]string{"/metrics": `[{"iter":1}]`, "/prometheus/metrics": "trtllm_prompt_tokens_total 10\ntrtllm_prompt_cached_tokens_total 4\ntrtllm_kv_cache_reused_blocks_total 1\n"},
			10, 4, "trtllm_prompt_tokens, trtllm_prompt_cached_tokens", ""},
		"its blocks": {map[string]string{"/prometheus/metrics": "trtllm_kv_cache_reused_blocks_total 1\ntrtllm_kv_cache_missed_blocks_total 3\n"},
			4, 1, "trtllm_kv_cache_missed_blocks, trtllm_kv_cache_reused_blocks", ""},
		"half":       {map[string]string{"/metrics": "vllm:prefix_cache_queries_total 8\n"}, 0, 0, "", "http://engine.test/metrics has no counters of a prefix cache"},
		"no metrics": {nil, 0, 0, "", "http://engine.test has no metrics of its prefix cache"},
		"nonsense":   {map[string]string{"/metrics": "vllm:prefix_cache_queries_total{a=\"b\nvllm:prefix_cache_hits_total NaN\nvllm:prefix_cache_hits_total"}, 0, 0, "", "no counters"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			bubble(t, Config{}, paths(&asked, tt.answer), func(t *testing.T, c *Client) {
				queries, hits, from, err := c.CacheCounters(t.Context())
				if queries != tt.queries || hits != tt.hits || from != tt.from || (err != nil) != (tt.text != "") {
					t.Errorf("%v queries, %v hits from %q, error %v", queries, hits, from, err)
				}
				if tt.text != "" && !hinted(err, tt.text, "--enable-metrics") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestResetCache(t *testing.T) {
	const vllm, sglang = "POST /reset_prefix_cache", "POST /flush_cache"
	for name, tt := range map[string]struct {
		answer     map[string]string
		asked      []string // without the metrics
		text, hint string   // of the error
	}{
		"vLLM":            {map[string]string{"/metrics": vllmMetrics, "/reset_prefix_cache": ""}, []string{vllm}, "", ""},
		"SGLang":          {map[string]string{"/metrics": sglangMetrics, "/reset_prefix_cache": "", "/flush_cache": "Cache flushed."}, []string{sglang}, "", ""},
		"neither named":   {map[string]string{"/flush_cache": "Cache flushed."}, []string{vllm, sglang}, "", ""},
		"vLLM for users":  {map[string]string{"/metrics": vllmMetrics}, []string{vllm}, "has no /reset_prefix_cache: its prefix cache cannot be reset", "VLLM_SERVER_DEV_MODE=1"},
		"no way":          {nil, []string{vllm, sglang}, "has no /reset_prefix_cache and no /flush_cache", "restart the server"},
		"requests run":    {map[string]string{"/flush_cache": "400!Flush cache failed."}, []string{vllm, sglang}, "did not reset the prefix cache (400): Flush cache failed.", "wait until no request runs"},
		"blocks are held": {map[string]string{"/reset_prefix_cache": `{"success":false}`}, []string{vllm}, `(200): {"success":false}`, "wait until no request runs"},
		"no right to":     {map[string]string{"/flush_cache": "401!sk-0123456789?"}, []string{vllm, sglang}, "(401): [API key]?", "administrator key"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			bubble(t, Config{APIKey: "sk-0123456789"}, paths(&asked, tt.answer), func(t *testing.T, c *Client) {
				err := c.ResetCache(t.Context())
				if tt.text == "" && err != nil || tt.text != "" && !hinted(err, tt.text, tt.hint) {
					t.Errorf("error %v", err)
				}
				asked = slices.DeleteFunc(asked, func(s string) bool { return strings.HasPrefix(s, "GET ") })
				if !slices.Equal(asked, tt.asked) {
					t.Errorf("asked %q, want %q", asked, tt.asked)
				}
			})
		})
	}
}

// TestSendEmbeddings: a whole answer over HTTP, and the body that asks for it.
func TestSendEmbeddings(t *testing.T) {
	var asked []string
	h := paths(&asked, map[string]string{"/v1/embeddings": `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":2,"total_tokens":2}}`})
	bubble(t, Config{Backend: BackendEmbeddings, Model: "m"}, h, func(t *testing.T, c *Client) {
		call := c.Send(t.Context(), time.Now(), request("p"))
		if !call.OK() || call.Usage == nil || call.Usage.Prompt != 2 || call.Chunks != nil || call.End != 0 {
			t.Errorf("%+v", call)
		}
		if want := `POST /v1/embeddings {"model":"m","input":"p"}`; len(asked) != 1 || asked[0] != want {
			t.Errorf("asked %q", asked)
		}
	})
	bubble(t, Config{Backend: BackendScore}, paths(&asked, nil), func(t *testing.T, c *Client) {
		if call := c.Send(t.Context(), time.Now(), request("p")); call.Status != 404 || !strings.HasPrefix(call.Error, "404 Not Found: 404 page not found") {
			t.Errorf("%+v", call)
		}
	})
}

func FuzzMetrics(f *testing.F) {
	f.Add(vllmMetrics)
	f.Add(sglangMetrics + "x{a=\"}\"} 1\nx{")
	f.Fuzz(func(t *testing.T, text string) {
		for name, v := range sumMetrics(text) {
			if v < 0 || name != "" && !strings.Contains(text, name) {
				t.Fatalf("%q = %v", name, v)
			}
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%q = %v: %v", name, v, err)
			}
		}
	})
}
