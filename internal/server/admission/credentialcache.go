package admission

import (
	"crypto/sha256"
	"sync"
)

// credentialCache remembers which account a credential last belonged to. It does not authenticate:
// it only decides whose permits a request uses until it is authenticated. Requests with unknown
// credentials share the anonymous account, so random keys compete only with each other. It keeps
// only hashes, in two generations, which bounds its size.
type credentialCache struct {
	mu                sync.Mutex
	current, previous map[CredentialHash]string
}

// CredentialHash is the hash of a request's token or session; zero if it has neither.
type CredentialHash [sha256.Size]byte

// credentialCacheSize is the size of one generation.
const credentialCacheSize = 10_000

// Account returns the account that a credential belonged to; anonymousAccount if it is unknown.
func (h *credentialCache) Account(c CredentialHash) string {
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

// Remember stores the account of a credential. A credential that several accounts share, as through
// a proxy with one token for all, belongs to the anonymous account.
func (h *credentialCache) Remember(c CredentialHash, account string) {
	if c == (CredentialHash{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if previous, ok := h.current[c]; ok && previous != account {
		account = anonymousAccount
	}
	h.put(c, account)
}

func (h *credentialCache) put(c CredentialHash, account string) {
	if h.current == nil || len(h.current) >= credentialCacheSize {
		h.current, h.previous = make(map[CredentialHash]string), h.current
	}
	h.current[c] = account
}

// Forget removes a rejected credential: requests with it must not use permits of the account any
// more.
func (h *credentialCache) Forget(c CredentialHash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.current, c)
	delete(h.previous, c)
}
