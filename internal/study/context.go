package study

import (
	"fmt"

	"perflab/internal/tune"
)

// ShorterContext says that a configuration serves shorter requests than the baseline, or than the
// model was made for where there is no baseline or its length is not known; "" where it does not,
// as far as the file tells. It is the subject's predicate: "serves requests of up to ...".
func (s *Study) ShorterContext(c tune.Config) string {
	k, err := s.Configure(c, Installed{})
	if err != nil || k.Config.MaxLen == 0 {
		return ""
	}
	of, whose := k.Config.Model.MaxLen, "the model's own length is"
	if s.Baseline != nil {
		if b, err := s.Configure(s.BaselineConfig(), Installed{}); err == nil && b.Config.MaxLen > 0 {
			of, whose = b.Config.MaxLen, "the baseline of up to"
		}
	}
	if k.Config.MaxLen >= of {
		return ""
	}
	return fmt.Sprintf("serves requests of up to %d tokens, %s %d", k.Config.MaxLen, whose, of)
}
