// Package token counts and splits text into tokens without a model's
// tokenizer file, and supplies words that are one token each.
//
//	token.Count("Hello, world!")        // 4: Hello | , |  world | !
//	prompt := token.Word(7)[1:] + token.Word(12) // two tokens
//
// Two packages need it that may not import each other: workload makes
// prompts of a length, and sim counts the prompts it receives. Nothing here measures;
// the figures of a run take their token counts from the server's usage.
//
// The split follows the pre-tokenisation pattern that cl100k_base, o200k_base
// and the Llama 3 and Qwen vocabularies share in essence: an optional leading
// space with letters, digits by three, runs of punctuation, runs of white
// space. Where a byte-pair vocabulary would then merge by frequency, letter
// runs are cut by weight (see letterWeight). Summed over English prose, Go,
// Python and Markdown the count is within 3 % of cl100k_base's, over Chinese,
// Japanese and Thai within 10 %, over other languages up to half off, as the
// vocabularies are among themselves. Qwen's tokenizers take digits one by one
// and so count numbers higher; an emoji is one token here and up to three there.
//
// Invariants: the pieces of a text joined are the text; a piece never cuts a
// valid UTF-8 sequence; an invalid byte is a piece; the pieces of a prefix
// that ends between two pieces are the first pieces of the text. Deliberately
// absent: vocabularies, special tokens, chat templates.
package token

// Count returns the number of tokens in text.
func Count(text string) int {
	n := 0
	for i := 0; i < len(text); n++ {
		i += next(text[i:])
	}
	return n
}

// Append appends one id per token of text to dst: a hash of the piece, so
// equal pieces have equal ids in every process.
func Append(dst []uint32, text string) []uint32 {
	for i := 0; i < len(text); {
		end := i + next(text[i:])
		h := uint32(2166136261) // FNV-1a
		for ; i < end; i++ {
			h = (h ^ uint32(text[i])) * 16777619
		}
		dst = append(dst, h)
	}
	return dst
}
