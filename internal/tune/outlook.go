package tune

// Outlook is what a search by prediction goes by (package foresight): configurations with what
// is predicted of them, no prediction made twice, and trials of those that are shown. It judges
// them as a race does its launches: by the objective over all weighed workloads, by bounds of
// the baseline's figures and by the accuracy guard.
type Outlook struct {
	Evidence ForecastEvidence // what was predicted, refused and cut
	Seen     []*Foreseen      // what was predicted, in order

	known map[string]*Foreseen
	*launcher
}

// ForecastEvidence is what stands behind the conclusion of a search by prediction.
type ForecastEvidence struct {
	Predicted int        `json:"predicted"`         // configurations
	Unknown   int        `json:"unknown,omitempty"` // of them without a figure
	Refused   int        `json:"refused,omitempty"` // further ones, by rules
	Cut       bool       `json:"cut,omitempty"`     // the search ended at its limit of predictions
	Named     []Entry    `json:"named,omitempty"`   // what the study names, with its gain over the baseline
	Settings  []Ablation `json:"settings,omitempty"`
	Outside   []string   `json:"outside,omitempty"` // what the errors behind Interval are not known of
}

// Foreseen is a configuration with what is predicted of it, and what its trial said where it
// had one.
type Foreseen struct {
	Config Config
	Score  Score

	Trial   int                // 0: it has none, or not ended yet
	Judged  Score              // by the trial
	Figures map[string]float64 // of the trial, over the weighed workloads
	Note    *Finding           // what is wrong with the trial

	origin lineage
	trial  *trial
}

// Removal is a setting of a configuration and what is left without it.
type Removal struct {
	Label string
	Left  *Foreseen
}

// mostForeseen is the number of predictions after which no further configuration is looked at.
const mostForeseen = 5000

// NewOutlook returns the ground of a search by prediction, or everything that is wrong with
// what it was given.
func NewOutlook(g SearchSpace, p Predictor, s Space, o Objective) (*Outlook, error) {
	race, err := NewRace(g, p, s, o, Budget{}, RaceOptions{})
	if err != nil {
		return nil, err
	}
	out := &Outlook{known: map[string]*Foreseen{}, launcher: race.state.launcher}
	for _, k := range g.Candidates {
		k.Config = Change{}.Apply(k.Config)
		out.candidates = append(out.candidates, &contender{Candidate: k, origin: lineage{candidate: k.Label}})
	}
	return out, nil
}

// Searching is the procedure of a search, which is suspended while a trial is under way.
func (o *Outlook) Searching(search func()) Procedure {
	return Procedure{body: func(p *Procedure) {
		o.starter = p
		search()
	}}
}

// Judge is the objective with its bounds as limits, as far as the baseline's figures are known.
func (o *Outlook) Judge() Objective { return o.bounds }

// Baseline makes the baseline's trial. Nothing is to be looked at before: bounds may be of its
// figures.
func (o *Outlook) Baseline() *Foreseen {
	f := &Foreseen{Config: o.baseConfig(), origin: theBaseline}
	o.Show(f, BaselineStage)
	o.base = append(o.base, f.trial)
	seen := o.look(f.Config, theBaseline)
	seen.take(f.trial, f.Note)
	return seen
}

// Show makes the trial of a configuration, under every workload; false where it had one.
func (o *Outlook) Show(f *Foreseen, stage string) bool {
	if f.trial != nil {
		return false
	}
	label := f.Label()
	if stage == BaselineStage {
		label = BaselineStage
	}
	all := append([]string{o.space.Primary}, o.space.Others...)
	t := o.measure(Proposal{Stage: stage, Label: label, Config: f.Config, Workloads: all}, f.origin)
	f.take(t, o.note(t))
	return true
}

func (f *Foreseen) take(t *trial, note *Finding) {
	f.trial, f.Trial, f.Judged, f.Figures, f.Note = t, t.Trial, t.score, t.merged, note
}

// Label is what led to the configuration: "vLLM + max_num_seqs 512".
func (f *Foreseen) Label() string { return f.origin.String() }

// Look predicts candidates, together where the predictor can.
func (o *Outlook) Look(all ...Candidate) []*Foreseen {
	var configs []Config
	for _, k := range all {
		configs = append(configs, Change{}.Apply(k.Config))
	}
	o.predictAhead(configs)
	var out []*Foreseen
	for i, k := range all {
		out = append(out, o.look(configs[i], lineage{candidate: k.Label}))
	}
	return out
}

// Near are a step or a swap from a configuration.
func (o *Outlook) Near(f *Foreseen) []*Foreseen {
	changes := o.around(f.Config)
	o.predictAhead(made(f.Config, changes))
	var out []*Foreseen
	for _, k := range changes {
		out = append(out, o.look(k.Apply(f.Config), f.origin.with(k)))
	}
	return out
}

// Without are a configuration's settings that may go, and what is left without each.
func (o *Outlook) Without(f *Foreseen) []Removal {
	var out []Removal
	for _, k := range o.search.Removals(f.Config) {
		out = append(out, Removal{k.Label, o.look(k.Apply(f.Config), f.origin.without(k))})
	}
	return out
}

// without is the lineage of a configuration that lost a setting.
func (l lineage) without(k Change) lineage {
	out := l.beside(k)
	if out.String() == l.String() {
		out.changes = append(out.changes, Change{Label: "without " + k.Label, Set: k.Set})
	}
	return out
}

// look predicts a configuration, once.
func (o *Outlook) look(config Config, from lineage) *Foreseen {
	k := config.key()
	if f, ok := o.known[k]; ok {
		return f
	}
	f := &Foreseen{Config: config, origin: from}
	if len(o.Seen) == mostForeseen {
		o.Evidence.Cut = true
		return f
	}
	o.known[k] = f
	if o.search.Refuse(config) != "" {
		o.Evidence.Refused++
		return f
	}
	o.Seen = append(o.Seen, f)
	o.Evidence.Predicted = len(o.Seen)
	if p := o.predict(config); !p.borrowed {
		f.Score = o.bounds.Score(Measured, p.figures)
	}
	if !f.Score.Known() {
		o.Evidence.Unknown++
	}
	return f
}

// Fails reports whether a configuration does not answer as the baseline does.
func (o *Outlook) Fails(f *Foreseen) bool { return o.failedGuard(f.Config) }

// Alike reports whether two configurations differ in numbers alone.
func (o *Outlook) Alike(a, b *Foreseen) bool { return o.sameChoices(a.Config, b.Config) }

// Pair holds the trial of one configuration against that of another; both have figures.
func (o *Outlook) Pair(a, b *Foreseen) *Pair {
	p := &Pair{Name: a.Label(), Against: b.Label(), Value: a.Judged.Value, Other: b.Judged.Value}
	return o.bounds.Decide(p, p.Name, a.Judged, b.Judged, b.trial.figures(o.space.Primary))
}
