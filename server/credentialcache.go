package server

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"sync"
)

// credentialCache remembers which account a credential belonged to when it was checked last. It authenticates nobody: it only says whose places a request takes until
// it is authenticated. Requests with unknown credentials all count as strangers, so random keys only take places from each other. Only hashes are
// kept, in two generations, which bounds their number.
type credentialCache struct {
	mu                sync.Mutex
	current, previous map[credentialHash]string
}

// credentialHash is the hash of a request's token or session; zero if it has neither.
type credentialHash [sha256.Size]byte

// credentialCacheSize is how many there are in one generation.
const credentialCacheSize = 10_000

// shown is the credential of a request: its token or, without one, its session.
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

// account is the account that a credential belonged to; strangers if it is unknown.
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

// learn remembers the account of a credential. One that several accounts share, as through a proxy with one token for all, belongs to strangers.
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

// forget is for a credential that was refused: requests with it must not take places of the account any more.
func (h *credentialCache) forget(c credentialHash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.current, c)
	delete(h.previous, c)
}
