package server

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
)

// ErrNotLoopback says that a server can be reached from elsewhere, so that there is no signing in for development.
var ErrNotLoopback = errors.New("server: signing in for development needs a listener on a loopback address, as 127.0.0.1")

// devLinkTTL is how long a link for development is good, if nobody follows it.
const devLinkTTL = time.Hour

const devLabel = "development link"

// devToken is what a link for development holds, sealed.
type devToken struct {
	Proof  string
	Who    Principal
	Return string
	Until  time.Time
}

// DevLink makes a link that lets whoever follows it first in as somebody, and leads on to a path. It is for a server that its user started on
// their own machine: it returns ErrNotLoopback if the listener is not on a loopback address, and neither the link nor the session that comes of it
// counts in a request that comes from elsewhere, through a proxy, or for another host. Before the first call of DevLink no such link is taken.
func (s *Server) DevLink(listener net.Addr, who Principal, path string) (string, error) {
	tcp, ok := listener.(*net.TCPAddr)
	switch {
	case !ok || !tcp.IP.IsLoopback():
		return "", ErrNotLoopback
	case s.sessions == nil:
		return "", errors.New("server: Config.SignIn is missing")
	case s.sessions.tls:
		return "", errors.New("server: OIDC.RedirectURL says that this server is for others too; there is no signing in for development")
	case who.Account == "" || who.ID == "" || len(who.Roles) == 0:
		return "", errors.New("server: a link needs somebody with an account and roles")
	}
	who.Auth = Auth{Method: MethodDev, Strength: desk.AuthToken}
	token, err := s.sessions.sealCookie(devLabel, devToken{Proof: rand.Text(), Who: who, Return: localPath(path), Until: s.sessions.now().Add(devLinkTTL)})
	if err != nil {
		return "", err
	}
	s.sessions.devEnabled.Store(true)
	return "http://" + tcp.String() + "/signin/dev?token=" + url.QueryEscape(token), nil
}

// devSignIn follows a link for development.
func (s *Server) devSignIn(w http.ResponseWriter, r *http.Request) {
	p := s.sessions
	if !p.devEnabled.Load() {
		s.rejectSignIn(w, r, problem("not_found", "there is no signing in for development"))
		return
	}
	if r.Method != http.MethodGet { // a HEAD only asks whether there is something
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !isLocal(r) {
		s.rejectSignIn(w, r, problem("forbidden", "signing in for development works on the machine of the server only, and not through a proxy"))
		return
	}
	var token devToken
	if !p.openCookie(devLabel, r.URL.Query().Get("token"), &token) || !p.now().Before(token.Until) {
		s.rejectSignIn(w, r, problem("forbidden", "this link is not good, or too old; start the program again to get another one"))
		return
	}
	if _, err := p.authenticate(r); err == nil { // claimsFor opens the page again
		http.Redirect(w, r, token.Return, http.StatusSeeOther)
		return
	}
	token.Who.Auth.At = p.now().Truncate(time.Second)
	s.startSession(w, r, token.Who, token.Proof, token.Return)
}

// forwarding are what proxies add. Whoever is behind one is not who the connection says.
var forwarding = []string{
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via",
}

// isLocal reports whether a request comes straight from this machine, and from a page of ours: a host that somebody else's name server says is
// here is still somebody else's.
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
