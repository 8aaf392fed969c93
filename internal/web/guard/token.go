package guard

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/field"
	"perflab/internal/input"
)

// TokensFile is the file of tokens in the state directory, where none is named.
const TokensFile = "tokens"

// shortestToken is how many characters a token has at least: a hash of fewer could be guessed.
const shortestToken = 20

// Token is who a token stands for. The token itself is not kept.
type Token struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	SHA256 string `json:"sha256"` // of the token, in hexadecimal digits
}

// MakeToken makes a token of 256 random bits.
func MakeToken() string {
	return "perflab_" + strings.ToLower(rand.Text()) + strings.ToLower(rand.Text())
}

// TokenLine is the line of a tokens file for a token.
func TokenLine(name string, role Role, token string) string {
	return fmt.Sprintf("%s %s sha256:%s", role, name, hashOf(token))
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// ParseTokens reads a tokens file: lines of a role, a name and sha256: with the hash of the token,
//
//	launch anna sha256:5e88...
//
// or a JSON list of objects with name, role and sha256. Empty lines and those that begin with # are
// skipped. A token that stands there itself is an error, which says what to write in its place.
func ParseTokens(b []byte) ([]Token, error) {
	var all []Token
	var err error
	if text := bytes.TrimSpace(b); bytes.HasPrefix(text, []byte("[")) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err = d.Decode(&all); err == nil && d.More() {
			err = errors.New("there is more behind the list")
		}
	} else {
		all, err = tokenLines(b)
	}
	if err != nil {
		return nil, err
	}
	return all, checkTokens(all)
}

func tokenLines(b []byte) ([]Token, error) {
	var all []Token
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 3 {
			return nil, fmt.Errorf("line %d: is not a role, a name and sha256: with a hash", n)
		}
		hash, ok := strings.CutPrefix(words[2], "sha256:")
		if !ok {
			return nil, fmt.Errorf("line %d: the token of %q stands there itself: write sha256:%s in its place", n, words[1], hashOf(words[2]))
		}
		all = append(all, Token{Name: words[1], Role: words[0], SHA256: hash})
	}
	return all, lines.Err()
}

func checkTokens(all []Token) error {
	if len(all) == 0 {
		return errors.New("there is no token in it")
	}
	names, hashes := map[string]bool{}, map[string]bool{}
	for i, t := range all {
		sum, err := hex.DecodeString(t.SHA256)
		_, noRole := ParseRole(t.Role)
		switch {
		case t.Name == "" || len(t.Name) > 64 || strings.ContainsFunc(t.Name, unprintable):
			return fmt.Errorf("token %d: needs a name of up to 64 printable characters", i+1)
		case noRole != nil:
			return fmt.Errorf("token of %q: %w", t.Name, noRole)
		case err != nil || len(sum) != sha256.Size:
			return fmt.Errorf("token of %q: sha256 is not a hash of 64 hexadecimal digits", t.Name)
		case names[t.Name]:
			return fmt.Errorf("there are two tokens of %q: give each a name of its own, so that the audit log tells them apart", t.Name)
		case hashes[strings.ToLower(t.SHA256)]:
			return fmt.Errorf("the token of %q is that of another name too", t.Name)
		}
		names[t.Name], hashes[strings.ToLower(t.SHA256)] = true, true
	}
	return nil
}

// tokenList is the tokens that are good now. A file is read again when it has changed.
type tokenList struct {
	mu      sync.Mutex
	file    string // "": the list does not change
	fixed   []Token
	read    []Token
	looked  time.Time
	stamp   time.Time
	size    int64
	problem func(error) // told of a file that was changed into one that cannot be read
}

// lookAgain is how long a tokens file is not looked at again.
const lookAgain = time.Second

// find is the token with a hash. It takes as long whether there is one or not.
func (l *tokenList) find(hash string) (Token, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refresh()
	var found Token
	ok := 0
	for _, list := range [][]Token{l.fixed, l.read} {
		for _, t := range list {
			if subtle.ConstantTimeCompare([]byte(strings.ToLower(t.SHA256)), []byte(hash)) == 1 {
				found, ok = t, 1
			}
		}
	}
	return found, ok == 1
}

// refresh reads the file if it is another than before. While it cannot be read no token of it is
// good: who takes one out by an editor that fails must not leave the door open.
func (l *tokenList) refresh() {
	if l.file == "" || time.Since(l.looked) < lookAgain {
		return
	}
	l.looked = time.Now()
	info, err := os.Stat(l.file)
	if err == nil && info.ModTime().Equal(l.stamp) && info.Size() == l.size {
		return
	}
	l.stamp, l.size = time.Time{}, -1
	if err == nil {
		l.read, err = readTokens(l.file)
	}
	if err != nil {
		l.read = nil
		l.problem(err)
		return
	}
	l.stamp, l.size = info.ModTime(), info.Size()
}

// largestTokens is how much of a tokens file is read.
const largestTokens = 1 << 20

func readTokens(path string) ([]Token, error) {
	b, err := input.File(path, largestTokens)
	if err != nil {
		return nil, err
	}
	all, err := ParseTokens(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// openTokens fills the guard's tokens as the options say, and makes one where they ask for it.
func (g opening) openTokens() error {
	if g.o.open() {
		return nil
	}
	l := &tokenList{problem: func(err error) {
		g.log.Error("the tokens file cannot be read: its tokens do not open anything until it can", "error", err)
	}}
	if g.o.Token != "" {
		l.fixed = []Token{{Name: "token", Role: Administer.String(), SHA256: hashOf(g.o.Token)}}
	}
	l.file = g.o.Tokens
	if l.file == "" && g.o.Token == "" {
		l.file = filepath.Join(g.o.State, TokensFile)
		if err := g.firstToken(l.file); err != nil {
			return err
		}
	}
	if l.file != "" {
		if _, err := readTokens(l.file); err != nil {
			return field.Errorf("tokens", "%v", err)
		}
	}
	g.tokens = l
	return nil
}

// firstToken makes the first token where there is no file of them.
func (g opening) firstToken(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	token := MakeToken()
	if err := durable.WriteFile(file, []byte(TokenLine("admin", Administer, token)+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the first token: %w", err)
	}
	g.made = token
	return nil
}

// AddToken makes a token of somebody with a role, adds its hash to a tokens file, which it makes where
// there is none, and gives the token, which nobody keeps. A server that reads the file takes it at once.
func AddToken(file, name string, role Role) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the tokens: %w", err)
	}
	text := strings.TrimRight(string(b), "\n")
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		return "", fmt.Errorf("%s is a JSON list, to which a program adds: only a file of lines can be added to", file)
	}
	token := MakeToken()
	text = strings.TrimPrefix(text+"\n", "\n") + TokenLine(name, role, token) + "\n"
	if _, err := ParseTokens([]byte(text)); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil { // a state directory is nobody else's to look into
		return "", fmt.Errorf("make the directory of the tokens: %w", err)
	}
	if err := durable.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("keep the tokens: %w", err)
	}
	return token, nil
}
