// Package guard keeps the server of a laboratory safe: who may come in, from where, how much and
// how often, and what a browser may do with what it gets.
//
//	g, err := guard.New(guard.Options{Listen: "127.0.0.1:8080", State: dir})
//	mux.Handle("POST /api/v1/launches", g.Need(guard.Launch, launch))
//	l, err := g.Listen()
//	err = g.Server(g.Handler(mux)).Serve(l)
//
// Invariants: a request that reaches the handler behind Handler came under a known host, not from
// another site's page, and from somebody who may read at least; what is public is named. No token
// is kept, logged or shown: of tokens and sessions the hashes are kept. Without tokens the server
// listens on loopback alone, and everybody who reaches it there may do everything.
//
// Deliberately absent: what is served, and to whom which of it belongs. There are no accounts and
// no passwords: a token stands for a person or a script, and taking it out of the file ends it.
package guard

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/field"
	"perflab/internal/web/guard/meter"
	"perflab/internal/web/guard/trail"
)

// Options say how a server is kept. Listen and State are needed; every other zero value is the
// sensible one.
type Options struct {
	Listen string // host:port; a host that is not this machine's loopback needs tokens, and TLS or Proxies
	State  string // directory of keys, sessions, the certificate that is made and the audit log; made with mode 0700

	Token    string // one token, of somebody called "token" who administers
	Tokens   string // file of tokens: see ParseTokens
	NewToken bool   // where there is neither: one is made at the first start, and kept as a hash in State

	Hosts   []string       // names, each with a port or without, by which the server is called beside loopback's
	Proxies []netip.Prefix // addresses of proxies, which end TLS and say for whom they ask; nobody else may connect then

	Certificate, Key string // files in PEM
	MakeCertificate  bool   // one is made and kept in State where no file is given

	Public  []string                                                             // paths that need no token, such as "/static/"; a slash at the end stands for all below
	Refused func(w http.ResponseWriter, r *http.Request, status int, why string) // answers what is refused; nil: a line of text, or JSON for the API
	Log     *slog.Logger                                                         // nil: nothing is logged
	Limits  Limits
}

// Limits bound what one client, and all of them, take of the server. Zero values are the defaults.
type Limits struct {
	Body        int64         // bytes of a request's body where the route says nothing else; default 1 MiB
	Rate        float64       // requests per second of one client; default 100
	Burst       int           // and how many at once; default 400
	WrongTokens int           // from one address before it has to wait, which then grows back in a minute; default 10
	Streams     int           // open event streams of one client; default 256
	AllStreams  int           // open event streams of all; default 1024
	Stream      time.Duration // for which one is open before it has to be opened again; default 1 h
	Header      time.Duration // for the header of a request; default 10 s
	Stalled     time.Duration // for which a body may not come, or an answer not be taken; default 30 s
	Idle        time.Duration // between requests on a connection; default 2 min
	Session     time.Duration // from login to its end; default 7 days
	AuditFile   int64         // bytes of a file of the audit log before the next is begun; default 16 MiB
	AuditFiles  int           // how many of them are kept; default 20
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Body, 1<<20)
	setDefault(&l.Rate, 100)
	setDefault(&l.Burst, 400)
	setDefault(&l.WrongTokens, 10)
	setDefault(&l.Streams, 256)
	setDefault(&l.AllStreams, 1024)
	setDefault(&l.Stream, time.Hour)
	setDefault(&l.Header, 10*time.Second)
	setDefault(&l.Stalled, 30*time.Second)
	setDefault(&l.Idle, 2*time.Minute)
	setDefault(&l.Session, 7*24*time.Hour)
	setDefault(&l.AuditFile, 16<<20)
	setDefault(&l.AuditFiles, 20)
	return l
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate reports everything that is wrong with options, each with the path of its value.
func (o Options) Validate() error {
	var errs []error
	bad := func(at, format string, args ...any) { errs = append(errs, field.Errorf(at, format, args...)) }
	if o.State == "" {
		bad("state", "needs a directory for keys and the audit log")
	}
	if (o.Certificate == "") != (o.Key == "") {
		bad("certificate", "a certificate needs its key, and a key its certificate: give both, [certificate] and [key]")
	}
	if o.Token != "" && len(o.Token) < shortestToken {
		bad("token", "is shorter than %d characters, which can be guessed: 'openssl rand -hex 32' makes a good one", shortestToken)
	}
	for _, h := range o.Hosts {
		if !validHost(h) {
			bad("host", "%q is no host name, with a port or without", h)
		}
	}
	loopback, err := isLoopback(o.Listen)
	switch {
	case err != nil:
		bad("listen", "%v", err)
	case loopback && o.open() && len(o.Hosts) > 0:
		bad("host", "who calls this server by another name than localhost comes from elsewhere, and without a token everybody may do everything: give [token] or [tokens]")
	case loopback && o.open() && len(o.Proxies) > 0:
		bad("proxy", "everybody behind a proxy may do everything where there is no token: give [token] or [tokens]")
	case !loopback:
		errs = append(errs, o.beyondLoopback()...)
	}
	return errors.Join(errs...)
}

// beyondLoopback is what is missing of a server that others can reach.
func (o Options) beyondLoopback() []error {
	var errs []error
	if o.open() {
		errs = append(errs, field.Errorf("listen", "others can reach %s, so it needs tokens: give [token], [tokens] or [new_token], or listen on 127.0.0.1", o.Listen))
	}
	if !o.tls() && len(o.Proxies) == 0 {
		errs = append(errs, field.Errorf("listen", "others can reach %s, so it needs TLS: give [certificate] and [key], or [make_certificate], or [proxy] with the address of what ends TLS before it", o.Listen))
	}
	return errs
}

// open says that everybody who reaches the server may do everything.
func (o Options) open() bool { return o.Token == "" && o.Tokens == "" && !o.NewToken }

func (o Options) tls() bool { return o.Certificate != "" || o.MakeCertificate }

// Guard keeps one server. Its methods may be called by several goroutines.
type Guard struct {
	o        Options
	log      *slog.Logger
	keys     keys
	tokens   *tokenList // nil: everybody may do everything
	made     string     // the token that was made just now
	sessions *sessionList
	trail    *trail.Trail
	meter    *meter.Meter
	cross    *http.CrossOriginProtection
	rates    *buckets // of requests, by client
	wrong    *buckets // of wrong tokens, by address
	streams  *streams
	noted    *buckets      // of refusals that the audit log has, by address
	shared   http.Handler  // what share links open; nil: they open nothing
	certs    *certificates // nil: without TLS
	stopping chan struct{} // closed when the server is told to end
	stop     func()        // closes it

	unaudited atomic.Int64
}

// opening is a guard that is being made.
type opening struct{ *Guard }

// New makes the guard of a server: it reads or makes what is kept in the state directory.
func New(o Options) (*Guard, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Limits = o.Limits.withDefaults()
	g := &Guard{o: o, log: o.Log, cross: http.NewCrossOriginProtection(), meter: meter.New()}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if err := g.openState(); err != nil {
		return nil, err
	}
	g.rates = newBuckets(o.Limits.Rate, float64(o.Limits.Burst))
	g.wrong = newBuckets(float64(o.Limits.WrongTokens)/60, float64(o.Limits.WrongTokens))
	g.noted = newBuckets(refusalsPerMinute/60.0, refusalsPerMinute)
	g.streams = &streams{each: o.Limits.Streams, all: o.Limits.AllStreams, open: map[string]int{}}
	g.stopping = make(chan struct{})
	g.stop = sync.OnceFunc(func() { close(g.stopping) })
	opening{g}.meters()
	return g, nil
}

// openState reads or makes all that the state directory keeps.
func (g *Guard) openState() error {
	lock, err := lockState(g.o.State)
	if err != nil {
		return err
	}
	defer lock.Close() // it holds nothing that could be lost
	if g.keys, err = openKeys(g.o.State); err != nil {
		return err
	}
	if err = (opening{g}).openCertificates(); err != nil {
		return err
	}
	if err = (opening{g}).openTokens(); err != nil {
		return err
	}
	if g.sessions, err = openSessions(g.o.State, g.o.Limits.Session); err != nil {
		return err
	}
	g.trail, err = trail.Open(auditDir(g.o.State), trail.Limits{File: g.o.Limits.AuditFile, Files: g.o.Limits.AuditFiles})
	return err
}

// refusalsPerMinute is how many refusals of one address the audit log has in a minute.
const refusalsPerMinute = 20

// Close ends what the guard holds open.
func (g *Guard) Close() error { return g.trail.Close() }

// Open says that there are no tokens: everybody who reaches the server may do everything.
func (g *Guard) Open() bool { return g.tokens == nil }

// Secure says that clients speak TLS, to the server or to a proxy before it.
func (g *Guard) Secure() bool { return g.o.tls() || len(g.o.Proxies) > 0 }

// MadeToken is the token that New made, to be shown once; "" where it made none.
func (g *Guard) MadeToken() string { return g.made }

// isPublic says that a path needs no token. One that leads elsewhere by its dots is not public,
// whatever the routes make of it.
func (g *Guard) isPublic(p string) bool {
	return isPlain(p) && slices.ContainsFunc(g.o.Public, func(public string) bool {
		return p == public || strings.HasSuffix(public, "/") && strings.HasPrefix(p, public)
	})
}

// isPlain says that a path leads where it seems to: it has no dots and no empty parts.
func isPlain(p string) bool { return p == "/" || path.Clean(p) == strings.TrimSuffix(p, "/") }
