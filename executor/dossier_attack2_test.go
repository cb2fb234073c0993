package executor

import "github.com/fermata-go/fermata/store"

// AtHand reports whether the dossier of a run is in memory, for tests.
func (e *Executor) AtHand(account, run string) bool {
	_, ok := e.dossiers.get(store.Key{Account: account, Run: run})
	return ok
}
