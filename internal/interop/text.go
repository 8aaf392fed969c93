package interop

// readText reads the blocks of a text and the document around them.
func readText(name string, data []byte) File {
	s := scan(name, data)
	f := attribute(s)
	return File{Name: name, Runs: f.runs, Doc: s.doc, Faults: f.sorted()}
}
