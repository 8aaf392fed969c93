package bench

import (
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/openai"
)

// ScenarioFits refuses a scenario that embeds or ranks beside a backend that
// does not: a chat would generate, without a limit, and be measured as such.
func ScenarioFits(scenario, backend string) error {
	var what string
	var fit []string
	switch {
	case strings.HasPrefix(scenario, "E"):
		what, fit = "embeds texts", []string{openai.BackendEmbeddings, openai.BackendPooling}
	case strings.HasPrefix(scenario, "R"):
		what, fit = "ranks documents", []string{openai.BackendRerank, openai.BackendScore, openai.BackendEmbeddings}
	}
	if len(fit) == 0 || slices.Contains(fit, backend) {
		return nil
	}
	return field.Errorf("scenario", "%s %s, which [backend] %s does not: use [backend] %s", scenario, what, backend, strings.Join(fit, " or "))
}
