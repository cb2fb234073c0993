package server

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"sync"
)

// credentialCache remembers which account a credential last belonged to. It does not authenticate:
// it only decides whose permits a request uses until it is authenticated. Requests with unknown
// credentials share the anonymous account, so random keys compete only with each other. It keeps
// only hashes, in two generations, which bounds its size.
type credentialCache struct {
	mu                sync.Mutex
	current, previous map[credentialHash]string
}

// credentialHash is the hash of a request's token or session; zero if it has neither.
type credentialHash [sha256.Size]byte

// credentialCacheSize is the size of one generation.
const credentialCacheSize = 10_000

// credentialOf returns the credential of a request: its token or, without one, its session.
func (s *Server) credentialOf(r *http.Request) credentialHash {
	if token := cmp.Or(bearerToken(r), r.Header.Get("Authorization")); token != "" {
		return sha256.Sum256([]byte(token))
	}
	if s.sessions != nil {
		if c, err := r.Cookie(s.sessions.cookieName(r, sessionCookie)); err == nil {
			return sha256.Sum256([]byte(c.Value))
		}
	}
	return credentialHash{}
}

// account returns the account that a credential belonged to; anonymousAccount if it is unknown.
func (h *credentialCache) account(c credentialHash) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	account, ok := h.current[c]
	if !ok {
		if account, ok = h.previous[c]; ok {
			h.put(c, account)
		}
	}
	return account
}

// remember stores the account of a credential. A credential that several accounts share, as through
// a proxy with one token for all, belongs to the anonymous account.
func (h *credentialCache) remember(c credentialHash, account string) {
	if c == (credentialHash{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, ok := h.current[c]; ok && was != account {
		account = anonymousAccount
	}
	h.put(c, account)
}

func (h *credentialCache) put(c credentialHash, account string) {
	if h.current == nil || len(h.current) >= credentialCacheSize {
		h.current, h.previous = make(map[credentialHash]string), h.current
	}
	h.current[c] = account
}

// forget removes a rejected credential: requests with it must not use permits of the account any
// more.
func (h *credentialCache) forget(c credentialHash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.current, c)
	delete(h.previous, c)
}
