package interop

// readText reads the blocks of a text and the document around them.
func readText(name string, _ []byte) File {
	return File{Name: name, Doc: &Document{}}
}
