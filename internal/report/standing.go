package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
)

// standing is what the pick of a study is to its reader: a recommendation, or what stands in the
// place of one.
type standing struct {
	word  string // of its column: "Recommended"
	title string // before its name and its command
}

func (x study) standing() standing {
	kept, misses := x.keepsBaseline(), x.missesSLOs()
	switch {
	case x.survey() && x.Partial:
		return standing{"Best", "Best so far"}
	case x.survey() && misses:
		return standing{"Best", "None meets every SLO. Best all the same"}
	case x.survey():
		return standing{"Best", "Best"}
	case x.Partial && kept:
		return standing{"So far", "Nothing is recommended yet. The baseline"}
	case x.Partial:
		return standing{"Leading", "Nothing is recommended yet. What leads so far"}
	case misses && kept:
		return standing{"Kept", "Nothing is recommended: nothing that was measured is shown to meet every SLO. The baseline"}
	case misses:
		return standing{"Nearest", "Nothing is recommended: nothing that was measured meets every SLO. What comes nearest"}
	case kept:
		return standing{"Kept", "The baseline stays"}
	}
	return standing{"Recommended", "Recommended"}
}

// missesSLOs reports whether what is singled out misses an SLO: by what the study concluded, in
// older files by its figures.
func (x study) missesSLOs() bool {
	switch {
	case x.Conclusion != nil:
		return len(x.Conclusion.Misses) > 0
	case x.Recommended == nil:
		return false
	}
	return slices.ContainsFunc(x.Recommended.SLOs, func(j outcome.Judged) bool { return !j.Met })
}

// lead introduces the command of the pick in a document.
func (d *studyDocument) lead() string {
	what := d.standing().title
	switch what {
	case "Best":
		return fmt.Sprintf("Best of the list by %s under %s on %s:", d.objective.Name, d.primaryTitle(), d.Hardware)
	case "Recommended":
		return fmt.Sprintf("Recommended configuration for %s on %s:", d.Model, d.Hardware)
	}
	return fmt.Sprintf("%s, for %s on %s:", what, d.Model, d.Hardware)
}

// commandText is how all of a pick is started, as it pastes into a shell.
func commandText(p *outcome.Pick) string {
	if len(p.Processes) == 0 {
		return doc.WrapCommand(p.Command)
	}
	return startLines(p.Processes, doc.WrapCommand)
}

// terminalCommand is commandText for a terminal, where of many processes the first stands for all.
func (d *studyDocument) terminalCommand(p *outcome.Pick) string {
	const most = 3 // more do not fit the screen
	plain := func(command string) string { return command }
	n := len(p.Processes)
	switch {
	case n == 0:
		return strings.TrimSpace(p.Command + "\n" + d.startNote(p))
	case n <= most:
		return startLines(p.Processes, plain)
	case p.Script == "":
		return fmt.Sprintf("%s\nand %s more, which are in the report", startLines(p.Processes[:1], plain), count(n-1, "process"))
	}
	return fmt.Sprintf("bash %s\nThe first of the %d processes that it starts:\n%s", path.Join(d.options.Dir, p.Script), n, startLines(p.Processes[:1], plain))
}
