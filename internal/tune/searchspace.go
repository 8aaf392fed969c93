package tune

// SearchSpace is which configurations a search may try. Who makes one knows what
// configurations mean; what it answers are pure functions of their arguments. A
// strategy that draws needs Domain and Rules alone.
type SearchSpace struct {
	// Candidates are the structural choices, each whole, that a race begins with.
	// One that cannot run says why, and is never launched.
	Candidates []Candidate
	// Elsewhere are changes that the study names and the baseline cannot take: they are
	// launched on the best that can.
	Elsewhere []Change
	// Domain is all that may be set, parameter by parameter: for strategies that
	// draw from a product. Not every product runs; see Rules.
	Domain []Dimension
	Rules
	Neighbourhood
}

// Rules say what a configuration amounts to.
type Rules interface {
	// Refuse says why a configuration cannot run, or nothing.
	Refuse(Config) string
	// Numerics names what decides the answers of the model: checkpoint, KV
	// cache, speculation. Configurations of one name answer alike.
	Numerics(Config) string
	// Settings counts what a configuration sets beside the engine's defaults.
	Settings(Config) int
}

// Neighbourhood is what is near to a configuration.
type Neighbourhood interface {
	// Steps are small changes of a configuration, a step on one numeric ladder
	// each, in the order in which they are worth trying.
	Steps(Config) []Change
	// Removals are the settings of a configuration that are not the engine's
	// defaults and may go, one a change, labelled by what goes.
	Removals(Config) []Change
}

// Predictor predicts the figures of a configuration under a workload, without a
// launch; false where it cannot. It is a pure function too: predictions of a study
// that is resumed must be those that it began with.
type Predictor interface {
	Predict(c Config, workload string) (figures map[string]float64, ok bool)
}

// Parallel is a Predictor that predicts several configurations in the time of a few, and
// answers from memory what it has predicted.
type Parallel interface {
	Predictor
	PredictAll(of []Config, workload string)
}

// Learner is a Predictor that a measured launch corrects. A race lets it learn once, of the
// first launch of its baseline under all of the load whose figure is far off the prediction. From then on
// its predictions are a pure function of configuration, workload and what it learned: a study
// that is resumed learns the same of its journal.
type Learner interface {
	Predictor
	// Learn corrects what is predicted from then on by figures of a configuration, by workload;
	// false where they correct nothing.
	Learn(c Config, figures map[string]map[string]float64) bool
}

// Candidate is a whole configuration that a search may begin with.
type Candidate struct {
	Label   string `json:"label"`
	Config  Config `json:"config"`
	Refused string `json:"refused,omitempty"` // why it cannot run, one sentence
	Named   bool   `json:"named,omitempty"`   // the study names it: it is launched before whatever it does not name
	Prior   string `json:"prior,omitempty"`   // where it comes from, if not from the catalogue: the study, a file of recipes
}

// Dimension is one parameter of the space with its values in their order, ""
// for the engine's default.
type Dimension struct {
	Name    string
	Values  []string
	Ordered bool // numbers, for which near values resemble each other
}
