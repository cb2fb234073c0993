package server

import "sync"

// turns are for what takes long and many might want at once: one caller of an account at a time, so that no account waits for another; and so many
// accounts, for there are only so many processors. It remembers those who are at it, and nobody else.
type turns struct {
	mu   sync.Mutex
	busy map[string]bool // by account
}

// mostTurns is how many accounts do the same at a time.
const mostTurns = 8

// take takes the turn of an account, until done. It says no if somebody else of the account has it, or too many other accounts have theirs.
func (t *turns) take(account string) (done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[account] || len(t.busy) >= mostTurns {
		return nil, false
	}
	if t.busy == nil {
		t.busy = make(map[string]bool)
	}
	t.busy[account] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, account)
	}, true
}
