package authn

import (
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/server/internal/problems"
)

// ErrNotLoopback is returned if the server is reachable from other machines, so that development
// sign-in is not available.
var ErrNotLoopback = errors.New("authn: development sign-in needs a listener on a loopback address, such as 127.0.0.1")

// devLinkTTL is how long an unused development link is valid.
const devLinkTTL = time.Hour

const devLabel = "development link"

// devToken is the sealed content of a development link.
type devToken struct {
	Proof  string
	Who    Principal
	Return string
	Until  time.Time
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
		return "", errors.New("authn: OIDC.RedirectURL is not a loopback URL; development sign-in is not available")
	case who.Account == "" || who.ID == "" || len(who.Roles) == 0:
		return "", errors.New("authn: a development link needs a principal with an account and roles")
	}
	who.Auth = Auth{Method: MethodDev, Strength: desk.AuthToken}
	token, err := p.sealCookie(devLabel, devToken{Proof: rand.Text(), Who: who, Return: localPath(path), Until: p.now().Add(devLinkTTL)})
	if err != nil {
		return "", err
	}
	p.devEnabled.Store(true)
	return "http://" + tcp.String() + "/signin/dev?token=" + url.QueryEscape(token), nil
}

// devSignIn handles a development link.
func (p *Sessions) devSignIn(w http.ResponseWriter, r *http.Request) {
	if !p.devEnabled.Load() {
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
	var token devToken
	if !p.openCookie(devLabel, r.URL.Query().Get("token"), &token) || !p.now().Before(token.Until) {
		p.rejectSignIn(w, r, problems.New("forbidden", "this link is invalid or has expired; restart the program to get a new one"))
		return
	}
	if _, err := p.authenticate(r); err == nil { // the page was opened again
		http.Redirect(w, r, token.Return, http.StatusSeeOther)
		return
	}
	token.Who.Auth.At = p.now().Truncate(time.Second)
	p.startSession(w, r, token.Who, token.Proof, token.Return)
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
