package guard

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// pagePolicy lets a page use this server's own files and nothing else: no script and no style that
// stands in the page. Pictures may be made by its scripts, to be saved.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// features are what a page of a laboratory has no use for.
const features = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), usb=(), xr-spatial-tracking=()"

// setHeaders sets what every answer has. A handler may set Cache-Control and the policy anew.
func setHeaders(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", features)
	h.Set("X-Frame-Options", "DENY") // for what does not know frame-ancestors
	h.Set("Cache-Control", "private, no-cache")
}

// Inline is what stands in a page itself and may run there: the texts between <style> and </style>,
// and between <script> and </script>, byte for byte.
type Inline struct{ Styles, Scripts []string }

// AllowInline lets the page of an answer have styles and scripts in it, these and no others, by
// their hashes. The page may load nothing. It is for whole pages that perflab made, such as that of
// a report which is looked at as it is.
func AllowInline(h http.Header, in Inline) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src "+hashes(in.Scripts)+"; style-src "+hashes(in.Styles)+
		"; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'")
	h.Set("X-Frame-Options", "SAMEORIGIN")
}

func hashes(texts []string) string {
	if len(texts) == 0 {
		return "'none'"
	}
	var all []string
	for _, t := range texts {
		sum := sha256.Sum256([]byte(t))
		all = append(all, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// Sandbox lets a page of somebody else be looked at, also in a frame of ours: it has its own styles
// and pictures, runs nothing, loads nothing, and is of no origin, so that it reads nothing of the server.
func Sandbox(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox")
	h.Set("X-Frame-Options", "SAMEORIGIN")
}

// Immutable lets browsers keep a file whose name changes when it does.
func Immutable(h http.Header) { h.Set("Cache-Control", "public, max-age=31536000, immutable") }

// foreign says that another site's page asks for something that is not a page to go to: pictures,
// scripts, frames, fetches. CrossOriginProtection looks after what changes something.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	dest := r.Header.Get("Sec-Fetch-Dest")
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || dest != "" && dest != "document"
}

// sizeText is a number of bytes as people say it.
func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
