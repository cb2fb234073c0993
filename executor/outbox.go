package executor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/store"
)

const (
	tellTimeout = 30 * time.Second // how long one notice may take
	tellLease   = time.Minute      // after which another process tries it
	tellMost    = time.Hour        // the longest pause between two tries
)

// deliver sends what has to be told, many at a time: a channel that is dead holds up nobody else. Each notice is claimed by its revision before
// it is sent, so that of several processes one sends it; if that one dies, another does after a while.
func (e *Executor) deliver() {
	for !e.closing() {
		due, err := e.store.Due(e.life, noticePaper, atOnce)
		if err != nil && e.life.Err() == nil {
			e.config.Log.Error("looking for what has to be told", "err", err)
		}
		var told atomic.Int64
		var group sync.WaitGroup
		for _, paper := range due {
			group.Go(func() {
				if err := e.send(paper); err == nil {
					told.Add(1)
				} else if e.life.Err() == nil {
					// What a channel says may hold anything, so it is not repeated.
					e.config.Log.Error("people could not be told", "notice", paper.ID, "tries", tried(paper)+1)
				}
			})
		}
		group.Wait()
		if len(due) < atOnce || told.Load() == 0 {
			e.rests(e.config.Poll)
		}
	}
}

// send tells one notice.
func (e *Executor) send(paper store.Paper) error {
	tries := tried(paper)
	now, err := e.store.Now(e.life)
	if err == nil {
		err = e.note(&paper, tries+1, now.Add(tellLease))
	}
	if errors.Is(err, store.ErrStale) {
		return nil // another process has it
	}
	if err != nil {
		return err
	}
	body, err := e.openPaper(paper)
	var notice desk.Notice
	if err == nil {
		err = json.Unmarshal(body, &notice)
	}
	if err != nil {
		return errors.Join(err, e.note(&paper, tries+1, now.Add(tellMost)))
	}
	ctx, cancel := context.WithTimeout(e.life, tellTimeout)
	defer cancel()
	if err := e.tell(ctx, paper.Account, notice); err != nil {
		pause := min(time.Second<<min(tries, 20), tellMost)
		return errors.Join(err, e.note(&paper, tries+1, now.Add(pause)))
	}
	return e.note(&paper, tries+1, time.Time{})
}

// tell hands a notice over. Whoever takes it may break.
func (e *Executor) tell(ctx context.Context, account string, notice desk.Notice) (err error) {
	defer safely.Recover(&err)
	return e.config.Desk.Notify(ctx, account, notice)
}

// tried is how often a notice was tried.
func tried(paper store.Paper) int {
	var facts struct {
		Tries int `json:"tries"`
	}
	if json.Unmarshal(paper.Facts, &facts) != nil {
		return 0
	}
	return facts.Tries
}

// note says when a notice is due again; never, if it was told.
func (e *Executor) note(paper *store.Paper, tries int, next time.Time) error {
	facts, err := json.Marshal(map[string]int{"tries": tries})
	if err != nil {
		return err
	}
	change := store.PaperChange{Kind: paper.Kind, ID: paper.ID, Base: paper.Revision, Body: paper.Body, Facts: facts, Next: next}
	if err := e.store.Amend(e.life, paper.Account, store.Beside{Papers: []store.PaperChange{change}}); err != nil {
		return err
	}
	paper.Revision++
	return nil
}
