package read

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/rundir"
)

// TestExportOfCompatRun: the calls of perflab's own run are whole by whatever
// definitions its figures were asked for.
func TestExportOfCompatRun(t *testing.T) {
	r := &rundir.Run{Header: result.Header{Model: "m"}}
	r.Calls = []result.Call{{Sent: 0, End: time.Second, Chunks: []result.Chunk{{At: time.Second, Tokens: 1}}}}
	var b bytes.Buffer
	note, err := exportGuideLLM(&b, r, result.Summary{Definitions: result.DefinitionsOf(result.VLLM)})
	if err != nil || note != "" || !strings.Contains(b.String(), `"time_to_first_token_ms"`) {
		t.Errorf("note %q, error %v, %d bytes", note, err, b.Len())
	}
}
