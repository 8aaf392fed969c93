package openai

import (
	"slices"
	"strings"
	"testing"
)

func TestProfile(t *testing.T) {
	for name, tt := range map[string]struct {
		answer     map[string]string
		text, hint string // of the error; "" for none
	}{
		"vLLM with a profiler": {map[string]string{"/start_profile": "", "/stop_profile": ""}, "", ""},
		"vLLM without":         {nil, "/start_profile answers 404", "--profiler-config"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			bubble(t, Config{}, paths(&asked, tt.answer), func(t *testing.T, c *Client) {
				err := c.StartProfile(t.Context())
				if tt.text != "" {
					if !hinted(err, tt.text, tt.hint) {
						t.Errorf("error %v", err)
					}
					return
				}
				if stopped := c.StopProfile(t.Context()); err != nil || stopped != nil {
					t.Errorf("errors %v, %v", err, stopped)
				}
				if want := []string{"POST /start_profile", "POST /stop_profile"}; !slices.Equal(asked, want) {
					t.Errorf("asked %q", asked)
				}
			})
		})
	}
}

// TestSampling: what no server takes is refused before it is asked.
func TestSampling(t *testing.T) {
	for want, cfg := range map[string]Config{
		"":                         {Sampling: Sampling{TopK: new(-1), MinP: new(0.0), FrequencyPenalty: new(-2.0), PresencePenalty: new(2.0), RepetitionPenalty: new(1.1)}},
		"top_k is -2":              {Sampling: Sampling{TopK: new(-2)}},
		"min_p is 1.5":             {Sampling: Sampling{MinP: new(1.5)}},
		"frequency_penalty is 3":   {Sampling: Sampling{FrequencyPenalty: new(3.0)}},
		"presence_penalty is -3":   {Sampling: Sampling{PresencePenalty: new(-3.0)}},
		"repetition_penalty is 0":  {Sampling: Sampling{RepetitionPenalty: new(0.0)}},
		"backend anthropic has no": {Backend: BackendAnthropic, Sampling: Sampling{MinP: new(0.1)}},
	} {
		cfg.BaseURL = "http://127.0.0.1:1"
		if _, err := New(cfg); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", want, err)
		}
	}
}
