package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/store"
)

const (
	tellTimeout = 30 * time.Second // how long sending one notice may take
	tellLease   = time.Minute      // after which another process may send it
	tellMost    = time.Hour        // the longest pause between two tries
)

// deliver sends notices that are due, many at a time, so that a channel that hangs does not hold up the others. Each notice is claimed by its revision
// before it is sent, so that one of several processes sends it; if that one dies, another does when the claim has expired.
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
					// The error of a channel may hold anything, so it is not logged.
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

// send claims and sends one notice, and notes what became of it.
func (e *Executor) send(paper store.Paper) error {
	tries := tried(paper) + 1
	now, err := e.store.Now(e.life)
	if err == nil {
		err = e.note(e.life, &paper, delivery{Tries: tries}, now.Add(tellLease))
	}
	if errors.Is(err, store.ErrStale) {
		return nil // another process has it
	}
	if err != nil {
		return err
	}
	var notice desk.Notice
	if err := e.readBody(paper, &notice); err != nil {
		return errors.Join(err, e.note(e.life, &paper, delivery{tries, failedToTell}, now.Add(tellMost)))
	}
	if request, err := e.requestOf(e.life, paper.Account, notice.Request); err == nil && invites(notice) && (request == nil || request.State != desk.Open) {
		if tries > 1 { // a process that died may have sent it
			return e.told(&paper, notice, delivery{tries, moot})
		}
		return e.note(e.life, &paper, delivery{tries, moot}, time.Time{})
	}
	ctx, cancel := context.WithTimeout(e.life, tellTimeout)
	defer cancel()
	err = e.tell(ctx, paper.Account, notice)
	e.stats.delivered(err)
	if err != nil {
		pause := min(time.Second<<min(tries-1, 20), tellMost)
		return errors.Join(err, e.note(e.life, &paper, delivery{tries, failedToTell}, now.Add(pause)))
	}
	return e.told(&paper, notice, delivery{tries, told})
}

// invites reports whether a notice asks people to look at a request. There is no use in sending it once the request is over.
func invites(n desk.Notice) bool {
	return n.Kind == desk.Notify || n.Kind == desk.Remind || n.Kind == desk.Page
}

// tell calls Notify, which may panic.
func (e *Executor) tell(ctx context.Context, account string, notice desk.Notice) (err error) {
	defer safely.Recover(&err)
	return e.config.Desk.Notify(ctx, account, notice)
}

// delivery is what became of a notice.
type delivery struct {
	Tries  int    `json:"tries"`
	Result result `json:"result,omitempty"`
}

// result is how the last try ended; "" while it is under way.
type result string

const (
	told         result = "told"
	failedToTell result = "failed"
	moot         result = "moot" // the request was over before the notice was sent
)

// tried is how often it was tried to send a notice.
func tried(paper store.Paper) int {
	var facts delivery
	if json.Unmarshal(paper.Facts, &facts) != nil {
		return 0
	}
	return facts.Tries
}

// told notes that a notice was sent, in the transaction in which its request learns of the delivery: a deadline may count from there.
func (e *Executor) told(paper *store.Paper, notice desk.Notice, became delivery) error {
	resolve := allClear(notice, "")
	for try, late := 0, false; ; try++ {
		beside, err := e.reached(paper.Account, notice, resolve)
		if err != nil {
			return err
		}
		if !late {
			change, err := noted(*paper, became, time.Time{})
			if err != nil {
				return err
			}
			beside.Papers = append(beside.Papers, change)
		}
		if len(beside.Papers) == 0 {
			return nil
		}
		if err = e.store.Amend(e.life, paper.Account, beside); !errors.Is(err, store.ErrStale) {
			return err
		}
		// The request was changed; or the claim had expired, and another process has the notice.
		now, err := e.store.Paper(e.life, paper.Account, paper.Kind, paper.ID)
		if err != nil {
			return err
		}
		if now.Revision != paper.Revision {
			if became.Result != told || notice.Kind != desk.Page {
				return nil // sending it twice does no harm
			}
			// The page was sent late. The other process may have found the request over, and sent the all-clear before this page.
			late, resolve = true, allClear(notice, fmt.Sprintf("-%d", became.Tries))
		}
		if err := backOff(e.life, try); err != nil {
			return err
		}
	}
}

// reached adds to a request whom a notice has reached. If the request is over, it posts resolve instead.
func (e *Executor) reached(account string, notice desk.Notice, resolve []desk.Notice) (store.Beside, error) {
	if !invites(notice) {
		return store.Beside{}, nil
	}
	asked, err := e.store.Question(e.life, account, notice.Request)
	if errors.Is(err, store.ErrNotFound) {
		return store.Beside{}, nil // its run was forgotten
	}
	if err != nil {
		return store.Beside{}, err
	}
	paper, err := e.store.Paper(e.life, account, store.RequestPaper, notice.Request)
	if err != nil {
		return store.Beside{}, err
	}
	known, err := e.readRequest(paper)
	if err != nil { // sending it again would not help
		e.config.Log.Error("people were told of a request that cannot be read", "request", notice.Request, "err", err)
		return store.Beside{}, nil
	}
	c, err := e.filingFor(e.life, asked)
	if err != nil {
		return store.Beside{}, err
	}
	if known.State != desk.Open {
		err := e.post(c, resolve, known.revision)
		return c.Beside, err
	}
	request := known.Request
	var changes []desk.Change
	for _, target := range notice.Targets {
		change, err := desk.Apply(request, desk.Delivered{Target: target, At: c.now}, e.env(c.now))
		if err != nil {
			return store.Beside{}, err
		}
		if change.Changed() {
			request, changes = change.Request, append(changes, change)
		}
	}
	if len(changes) > 0 {
		err = e.fileAll(c, changes, known.revision)
	}
	return c.Beside, err
}

// allClear is sent after a page that was under way when its request ended: the all-clear that came with the end may have arrived before the page. It is nil
// for other notices. name tells several of one page apart.
func allClear(page desk.Notice, name string) []desk.Notice {
	if page.Kind != desk.Page {
		return nil
	}
	after := page
	after.Key, after.Kind, after.Severity, after.Step, after.About = page.Key+"/resolve"+name, desk.Resolve, "", 0, desk.WasDecided
	return []desk.Notice{after}
}
