package report

// raceConclusion writes the conclusion of a race: what a busy reader needs.
func (m *mdWriter) raceConclusion(d oldDocument) {
	m.heading(2, "Conclusion")
	if d.Verdict != "" {
		m.para("**%s**", mdText(d.Sentence()))
	}
	m.list("-", d.Warnings...)
	for _, a := range d.Race.Answers {
		text := mdText(a.Text)
		if a.Tone == "down" {
			text = "**" + text + "**"
		}
		m.b.WriteString("- **" + a.Head + ":** " + text + "\n")
	}
	m.b.WriteString("\n")
	if d.Recommended == nil {
		m.para("No configuration is recommended.")
	} else {
		m.recommended(d)
	}
	m.chapter(3, d.Race.Comparisons)
	m.para("Notes:")
	m.list("1.", d.Remarks...)
	if len(d.Race.Chapters) > 0 {
		m.heading(2, reached)
	}
	for _, c := range d.Race.Chapters {
		m.chapter(3, c)
	}
}

// reached heads what stands behind the conclusion of a race.
const reached = "How the Conclusion Was Reached"

// raceResults writes the figures of the two sides, and the list of launches.
func (m *mdWriter) raceResults(d oldDocument) {
	if d.Race == nil {
		return
	}
	m.comparison(d)
	if len(d.Extra) > 0 {
		m.para("The run of %s:", mdText(d.ExtraOf))
		m.plots(d.Extra)
	}
}
