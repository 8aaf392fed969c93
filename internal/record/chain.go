package record

import (
	"crypto/sha256"
	"encoding/binary"

	"perflab/internal/field"
	"perflab/internal/input"
)

// ReadSalt reads the salt that a file holds; nil, for a random one, where none is named.
func ReadSalt(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	const least, most = 16, 1 << 16
	salt, err := input.File(path, most)
	if err != nil {
		return nil, field.Errorf("salt_file", "cannot be read: %v", err)
	}
	if len(salt) < least {
		return nil, field.Errorf("salt_file", "%s has %d bytes, which can be guessed: at least %d are needed, such as of head -c 32 /dev/urandom", path, len(salt), least)
	}
	return salt, nil
}

// link is a hash of a block and of all before it, which begins with the salt: who does not have that cannot find
// out by it whether a text that he knows was sent.
type link [sha256.Size]byte

// saltOf begins the chains of a recording.
func saltOf(salt []byte) link {
	return sha256.Sum256(append([]byte("perflab record\n"), salt...))
}

// next is the link of what follows.
func (l link) next(kind byte, units []uint32) link {
	b := make([]byte, 0, len(l)+1+4*len(units))
	b = append(append(b, l[:]...), kind)
	for _, u := range units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return sha256.Sum256(b)
}

// id is the number of a link, small enough for every reader of JSON.
func (l link) id() int64 { return int64(binary.LittleEndian.Uint64(l[:]) >> 11) }

// What follows a link.
const (
	wholeBlock = 'b'
	lastBlock  = 'l' // which is not whole
	moreBlocks = 'm' // that the engine counted beyond the text, as its template adds
	named      = 'n' // a session of a name
	grown      = 'g' // a session that was found
)

// chain is the links behind each whole block of a prompt, from the salt on.
func (c *cutter) chain(salt link) []link {
	links := append(make([]link, 0, len(c.ends)+1), salt)
	from := 0
	for _, end := range c.ends {
		links = append(links, links[len(links)-1].next(wholeBlock, c.units[from:end]))
		from = end
	}
	return links
}

// rest is what is behind the last whole block.
func (c *cutter) rest() []uint32 {
	if len(c.ends) == 0 {
		return c.units
	}
	return c.units[c.ends[len(c.ends)-1]:]
}

// blockIDs are the ids of n blocks of a prompt. What the engine counts beyond the text has ids that follow from
// it: equal prompts are equal to their end.
func (c *cutter) blockIDs(links []link, n int) []int64 {
	ids := make([]int64, 0, n)
	for _, l := range links[1:] {
		ids = append(ids, l.id())
	}
	last := links[len(links)-1]
	if rest := c.rest(); len(rest) > 0 && len(ids) < n {
		last = last.next(lastBlock, rest)
		ids = append(ids, last.id())
	}
	for len(ids) < n {
		last = last.next(moreBlocks, nil)
		ids = append(ids, last.id())
	}
	return ids[:n]
}
