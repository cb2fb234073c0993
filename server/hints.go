package server

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"sync"
)

// hints remembers which account a credential belonged to when it was checked last. It authenticates nobody: it only says whose places a request takes until
// it is authenticated. Requests with unknown credentials all count as strangers, so random keys only take places from each other. Only hashes are
// kept, in two generations, which bounds their number.
type hints struct {
	mu         sync.Mutex
	young, old map[credential]string
}

// credential is the hash of a request's token or session; zero if it has neither.
type credential [sha256.Size]byte

// mostHints is how many there are in one generation.
const mostHints = 10_000

// shown is the credential of a request: its token or, without one, its session.
func (s *Server) shown(r *http.Request) credential {
	if token := cmp.Or(bearer(r), r.Header.Get("Authorization")); token != "" {
		return sha256.Sum256([]byte(token))
	}
	if s.people != nil {
		if c, err := r.Cookie(s.people.cookieName(r, sessionName)); err == nil {
			return sha256.Sum256([]byte(c.Value))
		}
	}
	return credential{}
}

// account is the account that a credential belonged to; strangers if it is unknown.
func (h *hints) account(c credential) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	account, ok := h.young[c]
	if !ok {
		if account, ok = h.old[c]; ok {
			h.keep(c, account)
		}
	}
	return account
}

// learn remembers the account of a credential. One that several accounts share, as through a proxy with one token for all, belongs to strangers.
func (h *hints) learn(c credential, account string) {
	if c == (credential{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, ok := h.young[c]; ok && was != account {
		account = strangers
	}
	h.keep(c, account)
}

func (h *hints) keep(c credential, account string) {
	if h.young == nil || len(h.young) >= mostHints {
		h.young, h.old = make(map[credential]string), h.young
	}
	h.young[c] = account
}

// forget is for a credential that was refused: requests with it must not take places of the account any more.
func (h *hints) forget(c credential) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.young, c)
	delete(h.old, c)
}
