package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// sharePath begins the paths of share links.
const sharePath = "/share/"

// Bounds of a share link.
const (
	mostShared   = 200                 // ids
	longestID    = 200                 // bytes
	longestShare = 90 * 24 * time.Hour // until it ends
	longestLink  = 60 << 10            // bytes
)

// link is what a share link says.
type link struct {
	IDs   []string `json:"ids"`
	Until int64    `json:"until"` // seconds since 1970
}

// Errors of links: nobody learns more of one that is not ours.
var (
	errLink      = errors.New("this link was not made here, or was changed on its way: ask for it again")
	errLinkEnded = errors.New("this link has ended: ask for a new one")
)

// Share makes the path of a page that shows what has the ids, to everybody who has the path, until
// it ends. It opens nothing else. All links end when the file "key" of the state directory is removed.
func (g *Guard) Share(ids []string, life time.Duration) (path string, until time.Time, err error) {
	switch {
	case len(ids) == 0 || len(ids) > mostShared:
		return "", until, fmt.Errorf("a share link shows 1 to %d things, not %d", mostShared, len(ids))
	case life <= 0 || life > longestShare:
		return "", until, fmt.Errorf("a share link ends in up to %.0f days", longestShare.Hours()/24)
	case slices.ContainsFunc(ids, func(id string) bool { return id == "" || len(id) > longestID }):
		return "", until, fmt.Errorf("an id of a share link has 1 to %d bytes", longestID)
	}
	until = time.Now().Add(life).UTC().Truncate(time.Second)
	return sharePath + signLink(g.keys.share, link{ids, until.Unix()}) + "/", until, nil
}

var linkEncoding = base64.RawURLEncoding.Strict()

func signLink(key []byte, l link) string {
	b, _ := json.Marshal(l) // strings and a number: it never fails
	return linkEncoding.EncodeToString(b) + "." + linkEncoding.EncodeToString(sign(key, b))
}

func sign(key, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)
}

// readLink is what a link says that was signed by a key and has not ended.
func readLink(key []byte, s string, now time.Time) (link, error) {
	var l link
	if len(s) > longestLink {
		return l, errLink
	}
	said, mac, _ := strings.Cut(s, ".")
	b, bad := linkEncoding.DecodeString(said)
	m, alsoBad := linkEncoding.DecodeString(mac)
	if bad != nil || alsoBad != nil || !hmac.Equal(m, sign(key, b)) || json.Unmarshal(b, &l) != nil {
		return link{}, errLink
	}
	if now.Unix() >= l.Until {
		return link{}, errLinkEnded
	}
	return l, nil
}

// HandleShared says what serves share links: routes without the link in their paths, apart from those
// of everybody else, so that nothing is open by a link that was not meant to be. Of what they show each
// asks Who.Sees, and their links begin with Who.Base. Handler must not serve yet.
func (g *Guard) HandleShared(h http.Handler) { g.shared = h }

// serveShared serves what a link opens, to everybody who has it: whoever is logged in sees by it what
// all others see.
func (g *Guard) serveShared(w *writer, r *http.Request) string {
	signed, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, sharePath), "/")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "private, no-store")
	w.Header().Set("X-Robots-Tag", "noindex")
	l, err := readLink(g.keys.share, signed, time.Now())
	switch {
	case g.shared == nil || err == errLink || !isPlain("/"+rest): // dots lead out of the link
		g.refuse(w, r, refusal{http.StatusNotFound, "link", errLink.Error()})
		return "refused"
	case err != nil:
		g.refuse(w, r, refusal{http.StatusGone, "ended link", err.Error()})
		return "refused"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		g.refuse(w, r, refusal{http.StatusForbidden, "role", "a share link changes nothing"})
		return "refused"
	}
	who := From(r.Context())
	who.Name, who.Role, who.IDs, who.Base, who.Until = "share link", Shared, l.IDs, sharePath+signed, time.Unix(l.Until, 0)
	inner := r.WithContext(With(r.Context(), who))
	u := *r.URL
	u.Path, u.RawPath = "/"+rest, ""
	inner.URL = &u
	inner.RequestURI = (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).RequestURI()
	inner.Header = r.Header.Clone()
	inner.Header.Del("Authorization")
	inner.Header.Del("Cookie")
	g.shared.ServeHTTP(w, inner)
	return "shared " + inner.Pattern
}
