package scan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/engine"
)

// unfelt are flags that say how a server is reached, named or watched, and not how it serves.
var unfelt = map[string]bool{
	"--host": true, "--port": true, "--api-key": true, "--served-model-name": true, "--alias": true, "--uvicorn-log-level": true,
	"--log-level": true, "--log-level-http": true, "--disable-log-requests": true, "--no-enable-log-requests": true, "--disable-log-stats": true,
	"--enable-metrics": true, "--metrics": true, "--root-path": true, "--ssl-keyfile": true, "--ssl-certfile": true, "--download-dir": true,
	"--chat-template": true, "--tool-call-parser": true, "--reasoning-parser": true, "--enable-auto-tool-choice": true, "--seed": true,
}

// configuration is the key of what was measured: equal where engine, version, image, model with
// its checkpoint, hardware, GPUs and all flags that matter are, in whatever order and spelling the
// command has them. known says that there was a command; without one the key is of the model and of
// where it was served, which is all that tells one server from another.
func configuration(f *Facts) (key string, known bool) {
	if f.Kind != Run && f.Kind != Study {
		return "", false
	}
	version := strings.TrimPrefix(f.EngineVersion, "v")
	if f.Command == "" {
		if f.Model == "" {
			return "", false
		}
		return id("server", f.Imported, f.Engine, version, f.Image, f.Model, f.Hardware, f.GPUs, f.targets, f.Label), false
	}
	c, err := engine.ParseText(f.Command)
	if err != nil { // as written, which is a key too
		return id("command", f.Engine, version, f.Image, f.Model, f.Hardware, f.GPUs, canonical(strings.Fields(f.Command))), true
	}
	f.Engine = cmp.Or(f.Engine, c.Engine)
	file, _ := json.Marshal(c.File) // maps in the order of their keys
	params, _ := json.Marshal(c.Params)
	env := slices.Sorted(slices.Values(c.Env))
	return id("configuration", cmp.Or(c.Engine, f.Engine), cmp.Or(version, strings.TrimPrefix(c.Version, "v")), f.Image, c.Model, f.Hardware, f.GPUs,
		params, canonical(c.Extra), canonical(c.Unread), env, file, c.FilePath, fmt.Sprint(c.Prefill, c.Decode, c.Router)), true
}

// canonical puts flags with their values in one order, and leaves out those that change nothing
// of how a server serves.
func canonical(words []string) string {
	var flags []string
	for _, w := range words {
		name, value, joined := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "-") && joined:
			flags = append(flags, name+" "+value)
		case strings.HasPrefix(w, "-") || len(flags) == 0:
			flags = append(flags, w)
		default:
			flags[len(flags)-1] += " " + w
		}
	}
	flags = slices.DeleteFunc(flags, func(s string) bool {
		name, _, _ := strings.Cut(s, " ")
		return unfelt[name]
	})
	slices.Sort(flags)
	return strings.Join(flags, "\n")
}
