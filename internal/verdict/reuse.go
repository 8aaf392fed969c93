package verdict

import (
	"fmt"
	"strings"

	"perflab/internal/result"
)

// judgeReuse says whether the engine found in its prefix cache what it could have found, and where the rest was
// lost: by the engine, for want of room, or by sending prompts to another replica than the one that had them.
func judgeReuse(a *result.Analysis) (result.Status, string) {
	const far = 0.05 // of the prompt tokens
	f := a.Figures
	possible := f["possible_prefix_hit_ratio"]
	routed, several := f["routed_prefix_hit_ratio"]
	if !several {
		routed = possible
	}
	fitting, fits := f["fitting_prefix_hit_ratio"]
	if !fits {
		fitting = routed
	}
	found, told := f["prefix_hit_ratio"]
	if v, ok := f["cached_token_ratio"]; ok && !told {
		found, told = v, true
	}
	text := fmt.Sprintf("%.1f %% of the prompt tokens were sent before in whole blocks", 100*possible)
	if told {
		text += fmt.Sprintf(", %.1f %% came from the prefix cache", 100*found)
	}
	var lost []string
	if possible-routed > far {
		lost = append(lost, fmt.Sprintf("%.1f %% had been sent to another replica: keep a session, or requests that begin alike, at one replica", 100*(possible-routed)))
	}
	if fits && routed-max(fitting, found) > far {
		lost = append(lost, fmt.Sprintf("for %.1f %% the KV cache of %.0f tokens has no room until they are asked for again: more room, fewer sessions at a time, or a second tier for it in host memory would find them", 100*(routed-fitting), f["kv_cache_tokens"]))
	}
	switch {
	case !told:
	case fitting-found > far && found < 0.005:
		lost = append(lost, "the engine found none of them: see whether its prefix caching is on, and whether these are the counters of the engines that had the load")
	case fitting-found > far && fits:
		lost = append(lost, fmt.Sprintf("%.1f %% more would have been possible with the room that it has: see whether others use the engine too, whether something before it changes prompts, and whether it puts requests off until their prefix is gone", 100*(fitting-found)))
	case fitting-found > far:
		lost = append(lost, fmt.Sprintf("%.1f %% more would have been possible: see whether its cache has room for the sessions of the run, and whether something before it changes prompts", 100*(fitting-found)))
	}
	if len(lost) == 0 {
		return result.Sound, text
	}
	return result.Remark, text + "; " + strings.Join(lost, "; ")
}
