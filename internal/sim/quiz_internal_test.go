package sim

// FindQuestion is what the server does to each prompt.
func FindQuestion(set []Question) func(prompt string) bool {
	q := newQuiz(set)
	return func(prompt string) bool {
		_, ok := q.find(prompt)
		return ok
	}
}
