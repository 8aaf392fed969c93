package workload

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"perflab/internal/field"
)

// sonnet makes prompts of lines of verse.
func sonnet() dataset {
	return dataset{
		name: "sonnet", group: groupMadeUp,
		params: []param{
			{key: "sonnet_input_len", help: "prompt tokens at most", standard: 550},
			{key: "sonnet_output_len", help: "output tokens", standard: 150},
			{key: "sonnet_prefix_len", help: "tokens of the prompt that all share", standard: 200},
		},
		fill: func(s *Spec) { s.NumPrompts = cmp.Or(s.NumPrompts, 1000) },
		check: func(_, d Spec, f *faults) {
			if d.SonnetPrefixLen >= d.SonnetInputLen {
				f.add("sonnet_prefix_len", "%d must be below [sonnet_input_len] %d, of which it is a part", d.SonnetPrefixLen, d.SonnetInputLen)
			}
		},
		open:   func(s Spec, p promptBuilder) (source, error) { return arrangeSonnets(strings.NewReader(sonnets), s, p) },
		read:   func(f *os.File, s Spec, p promptBuilder) (source, error) { return arrangeSonnets(f, s, p) },
		slow:   func(s Spec) bool { return s.Tokenizer != "" }, // which measures the prompts one by one
		shares: func(s Spec) bool { return s.SonnetPrefixLen > 0 },
		title: func(s Spec) string {
			if s.Path != "" {
				return ofFile("Sonnet dataset", s)
			}
			return "Sonnet dataset"
		},
	}
}

// sonnetQuestion stands before the lines.
const sonnetQuestion = "Below are lines of a poem. Arrange some of them into a new one:\n"

// arrangeSonnets makes prompts of lines of verse, in the shape of the other
// clients' sonnet dataset: a question and the first lines of the poem, shared
// by all, then lines at random while they fit the input length. Natural text
// of nearly even length, which speculative decoding and routed experts take
// otherwise than random words.
func arrangeSonnets(poem io.Reader, s Spec, p promptBuilder) (source, error) {
	lines, err := verses(poem)
	if err != nil {
		return source{}, err
	}
	count := make([]int, len(lines))
	for i, line := range lines {
		if count[i], err = p.count(line, false); err != nil {
			return source{}, err
		}
		count[i] = max(1, count[i])
	}
	used, err := p.count(sonnetQuestion, false)
	if err != nil {
		return source{}, err
	}
	shared := 0
	for shared < len(lines) && used+count[shared] <= s.SonnetPrefixLen {
		used += count[shared]
		shared++
	}
	if need := used + slices.Min(count); need > s.SonnetInputLen {
		return source{}, field.Errorf("sonnet_input_len", "%d has no room for a line behind the question and the shared lines: give at least %d", s.SonnetInputLen, need)
	}
	prefix := sonnetQuestion + strings.Join(lines[:shared], "")
	// own calls fn with each line of request i alone.
	own := func(i int, fn func(line int)) {
		rng := promptStream(s.Seed, i)
		for n := used; ; {
			line := rng.IntN(len(lines))
			if n += count[line]; n > s.SonnetInputLen {
				return
			}
			fn(line)
		}
	}
	src := source{rows: make([]row, s.NumPrompts)}
	src.prompt = func(i int) string {
		var b strings.Builder
		b.WriteString(prefix)
		own(i, func(line int) { b.WriteString(lines[line]) })
		return b.String()
	}
	for i := range src.rows {
		n := used
		own(i, func(line int) { n += count[line] })
		if p.tok != nil { // lines may join where they meet
			if n, err = p.count(src.prompt(i), false); err != nil {
				return source{}, err
			}
		}
		src.rows[i] = row{input: n, output: s.SonnetOutputLen}
	}
	return src, nil
}

// verses returns the lines of a poem, each with its end; blank ones are left out.
func verses(poem io.Reader) ([]string, error) {
	in := bufio.NewScanner(poem)
	var lines []string
	for in.Scan() {
		if line := strings.TrimSpace(in.Text()); line != "" {
			lines = append(lines, line+"\n")
		}
	}
	if in.Err() == nil && len(lines) == 0 {
		return nil, errors.New("it has no line of text")
	}
	return lines, in.Err()
}

// sonnets are William Shakespeare's sonnets 1, 18, 29, 30, 55, 73, 116 and 130.
const sonnets = `From fairest creatures we desire increase,
That thereby beauty's rose might never die,
But as the riper should by time decease,
His tender heir might bear his memory:
But thou, contracted to thine own bright eyes,
Feed'st thy light's flame with self-substantial fuel,
Making a famine where abundance lies,
Thyself thy foe, to thy sweet self too cruel.
Thou that art now the world's fresh ornament
And only herald to the gaudy spring,
Within thine own bud buriest thy content
And, tender churl, mak'st waste in niggarding.
Pity the world, or else this glutton be,
To eat the world's due, by the grave and thee.
Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade
Nor lose possession of that fair thou owest;
Nor shall Death brag thou wander'st in his shade,
When in eternal lines to time thou growest:
So long as men can breathe or eyes can see,
So long lives this and this gives life to thee.
When, in disgrace with fortune and men's eyes,
I all alone beweep my outcast state
And trouble deaf heaven with my bootless cries
And look upon myself and curse my fate,
Wishing me like to one more rich in hope,
Featured like him, like him with friends possess'd,
Desiring this man's art and that man's scope,
With what I most enjoy contented least;
Yet in these thoughts myself almost despising,
Haply I think on thee, and then my state,
Like to the lark at break of day arising
From sullen earth, sings hymns at heaven's gate;
For thy sweet love remember'd such wealth brings
That then I scorn to change my state with kings.
When to the sessions of sweet silent thought
I summon up remembrance of things past,
I sigh the lack of many a thing I sought,
And with old woes new wail my dear time's waste:
Then can I drown an eye, unused to flow,
For precious friends hid in death's dateless night,
And weep afresh love's long since cancell'd woe,
And moan the expense of many a vanish'd sight:
Then can I grieve at grievances foregone,
And heavily from woe to woe tell o'er
The sad account of fore-bemoaned moan,
Which I new pay as if not paid before.
But if the while I think on thee, dear friend,
All losses are restored and sorrows end.
Not marble, nor the gilded monuments
Of princes, shall outlive this powerful rhyme;
But you shall shine more bright in these contents
Than unswept stone besmear'd with sluttish time.
When wasteful war shall statues overturn,
And broils root out the work of masonry,
Nor Mars his sword nor war's quick fire shall burn
The living record of your memory.
'Gainst death and all-oblivious enmity
Shall you pace forth; your praise shall still find room
Even in the eyes of all posterity
That wear this world out to the ending doom.
So, till the judgment that yourself arise,
You live in this, and dwell in lovers' eyes.
That time of year thou mayst in me behold
When yellow leaves, or none, or few, do hang
Upon those boughs which shake against the cold,
Bare ruin'd choirs, where late the sweet birds sang.
In me thou see'st the twilight of such day
As after sunset fadeth in the west,
Which by and by black night doth take away,
Death's second self, that seals up all in rest.
In me thou see'st the glowing of such fire
That on the ashes of his youth doth lie,
As the death-bed whereon it must expire
Consumed with that which it was nourish'd by.
This thou perceivest, which makes thy love more strong,
To love that well which thou must leave ere long.
Let me not to the marriage of true minds
Admit impediments. Love is not love
Which alters when it alteration finds,
Or bends with the remover to remove:
O no! it is an ever-fixed mark
That looks on tempests and is never shaken;
It is the star to every wandering bark,
Whose worth's unknown, although his height be taken.
Love's not Time's fool, though rosy lips and cheeks
Within his bending sickle's compass come:
Love alters not with his brief hours and weeks,
But bears it out even to the edge of doom.
If this be error and upon me proved,
I never writ, nor no man ever loved.
My mistress' eyes are nothing like the sun;
Coral is far more red than her lips' red;
If snow be white, why then her breasts are dun;
If hairs be wires, black wires grow on her head.
I have seen roses damask'd, red and white,
But no such roses see I in her cheeks;
And in some perfumes is there more delight
Than in the breath that from my mistress reeks.
I love to hear her speak, yet well I know
That music hath a far more pleasing sound;
I grant I never saw a goddess go;
My mistress, when she walks, treads on the ground:
And yet, by heaven, I think my love as rare
As any she belied with false compare.
`
