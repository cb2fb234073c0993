package authn

import (
	"crypto/rand"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// ErrNotLoopback is returned if the server is reachable from other machines, so that development
// sign-in is not available.
var ErrNotLoopback = errors.New("authn: development sign-in needs a listener on a loopback address, such as 127.0.0.1")

// devLinkTTL is how long an unused development link is valid.
const devLinkTTL = time.Hour

// devCodeLength is the length of the code in a development link. A character has 5 random bits, and
// only this machine can try codes.
const devCodeLength = 12

// devLinks are the development links that were created, by code.
type devLinks struct {
	mu     sync.Mutex
	byCode map[string]devLink
}

// devLink is what a development link does.
type devLink struct {
	proof string // makes the session unique, so that the link works once
	who   Principal
	path  string
	until time.Time
}

// add stores a link, and deletes the expired ones.
func (l *devLinks) add(code string, link devLink, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byCode == nil {
		l.byCode = make(map[string]devLink)
	}
	maps.DeleteFunc(l.byCode, func(_ string, old devLink) bool { return !now.Before(old.until) })
	l.byCode[code] = link
}

// find returns the link of a code. enabled reports whether there was ever a link.
func (l *devLinks) find(code string, now time.Time) (link devLink, found, enabled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	link, found = l.byCode[code]
	return link, found && now.Before(link.until), l.byCode != nil
}

// DevLink returns a link that signs in its first visitor as who, and redirects to a path. It is for
// a server that its user started on their own machine. It returns ErrNotLoopback if the listener is
// not on a loopback address. The link and its session are rejected in requests from other machines,
// through a proxy, or for another host. Links are accepted only after the first call of DevLink.
func (p *Sessions) DevLink(listener net.Addr, who Principal, path string) (string, error) {
	tcp, ok := listener.(*net.TCPAddr)
	switch {
	case !ok || !tcp.IP.IsLoopback():
		return "", ErrNotLoopback
	case p.tls:
		return "", errors.New("authn: browsers use this server with TLS; development sign-in is not available")
	case who.Account == "" || who.ID == "" || len(who.Roles) == 0:
		return "", errors.New("authn: a development link needs a principal with an account and roles")
	}
	who.Auth = Auth{Method: MethodDev, Strength: requirement.AuthToken}
	code := strings.ToLower(rand.Text()[:devCodeLength])
	p.devLinks.add(code, devLink{proof: rand.Text(), who: who, path: localPath(path), until: p.now().Add(devLinkTTL)}, p.now())
	return "http://" + tcp.String() + "/s/" + code, nil
}

// devSignIn handles a development link.
func (p *Sessions) devSignIn(w http.ResponseWriter, r *http.Request) {
	link, found, enabled := p.devLinks.find(r.PathValue("code"), p.now())
	if !enabled {
		p.rejectSignIn(w, r, problems.New("not_found", "development sign-in is not available"))
		return
	}
	if r.Method != http.MethodGet { // HEAD must not use up the link
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !isLocal(r) {
		p.rejectSignIn(w, r, problems.New("forbidden", "development sign-in works only on the server's machine, and not through a proxy"))
		return
	}
	if !found {
		p.rejectSignIn(w, r, problems.New("forbidden", "this link is invalid or has expired; restart the program to get a new one"))
		return
	}
	if _, err := p.authenticate(r); err == nil { // the page was opened again
		http.Redirect(w, r, link.path, http.StatusSeeOther)
		return
	}
	link.who.Auth.At = p.now().Truncate(time.Second)
	p.startSession(w, r, link.who, link.proof, link.path)
}

// forwarding are headers that proxies add. The connection does not identify a client behind a
// proxy.
var forwarding = []string{
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via",
}

// isLocal reports whether a request comes directly from this machine and is for a loopback host.
// Another host name that resolves to this machine is rejected (DNS rebinding).
func isLocal(r *http.Request) bool {
	for _, name := range forwarding {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().IsLoopback() {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]") // without a port
	}
	return isLoopbackHost(host)
}
