package engine

// RefusalOf finds in a log the line by which an engine refused its configuration, and
// ClassOf the class of a failure. Package logs, which imports this one, has both:
// tests set them.
var RefusalOf, ClassOf func(engineName, log string) (text string, ok bool)
