package executor

import (
	"errors"

	"github.com/fermata-go/fermata/store"
)

// The chores, for tests.
const (
	SignChore  = signChore
	CheckChore = checkChore
	ChorePaper = chorePaper
	ChoreLease = choreLease
)

// Turn does a chore if it is due, without waiting for the clock. It reports what it came to.
func (e *Executor) Turn(name string) (Pass, error) {
	for _, c := range e.chores() {
		if c.name == name {
			if _, err := e.turn(c); err != nil {
				return Pass{}, err
			}
			var pass Pass
			_, err := e.readFacts(e.life, "", chorePaper, name, &pass)
			return pass, err
		}
	}
	return Pass{}, errors.New("there is no such chore")
}

// Hurry makes a chore due.
func (e *Executor) Hurry(name string) error {
	var pass Pass
	paper, err := e.readFacts(e.life, "", chorePaper, name, &pass)
	if err != nil || paper.Revision == 0 { // then it is due anyway
		return err
	}
	now, err := e.store.Now(e.life)
	if err != nil {
		return err
	}
	return e.note(e.life, &paper, pass, now)
}

// AtHand reports whether the dossier of a run is in memory, for tests.
func (e *Executor) AtHand(account, run string) bool {
	_, ok := e.dossiers.get(store.Key{Account: account, Run: run})
	return ok
}
