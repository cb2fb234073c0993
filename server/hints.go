package server

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"sync"
)

// hints remember whose a credential was when somebody came with it last. That is no proof, and nobody gets in by it: it says whose place a request takes
// before anybody has looked. Whoever comes with something that is not remembered is a stranger, however many things they come with: so random keys take
// places from each other alone. Hashes are kept, in two generations, so that there are never too many.
type hints struct {
	mu         sync.Mutex
	young, old map[credential]string
}

// credential is the hash of what a request shows; zero if it shows nothing.
type credential [sha256.Size]byte

// mostHints is how many there are in one generation.
const mostHints = 10_000

// shown is what a request shows: its token, however that is spelled, or else its session.
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

// account is whose a credential was; strangers if nobody remembers.
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

// learn remembers whose a credential is. One that several come with, as through a proxy that has one for all, is nobody's.
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

// forget is for a credential that is good no longer: what is done with it is no affair of the account any more.
func (h *hints) forget(c credential) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.young, c)
	delete(h.old, c)
}
