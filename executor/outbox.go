package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/safely"
	"github.com/fermata-go/fermata/store"
)

const (
	tellTimeout  = 30 * time.Second // how long sending one notice may take
	tellPatience = 2 * time.Second  // how long those that come next are held up for it
	tellLease    = time.Minute      // after which another process may send it
	tellMost     = time.Hour        // the longest pause between two tries
	tellTries    = 84               // how often it is tried if the request is over: for about three days
)

// deliver sends notices that are due, many at a time. A channel that hangs is not waited for long, so that it does not hold up the others; one that does
// not is, so that what a process tells comes in order. Each notice is claimed by its revision before it is sent, so that one of several processes sends it;
// if that one dies, another does when the claim has expired.
func (e *Executor) deliver() {
	places := make(chan struct{}, atOnce) // one is taken for each notice that is on its way
	for !e.closing() {
		select {
		case places <- struct{}{}: // there is room
			<-places
		case <-e.over:
			return
		}
		room := atOnce - len(places)
		due, err := e.store.Due(e.life, noticePaper, room)
		e.complain("looking for what has to be told", err)
		var told atomic.Int64
		var unclaimed tally
		var group sync.WaitGroup
		for _, paper := range due {
			places <- struct{}{}
			group.Add(1)
			e.work.Go(func() {
				defer func() { <-places; group.Done() }()
				if e.sent(paper, &unclaimed) {
					told.Add(1)
				}
			})
		}
		waitFor(&group, tellPatience)
		e.complain("people could not be told, as nothing can be written", unclaimed.err())
		if len(due) < room || told.Load() == 0 {
			e.rests(e.config.Poll)
		}
	}
}

// waitFor waits for a group, but no longer than atMost.
func waitFor(group *sync.WaitGroup, atMost time.Duration) {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// sent claims and sends a notice, and reports whether that went well. It did if another process has it.
func (e *Executor) sent(paper store.Paper, unclaimed *tally) bool {
	n, err := e.claimNotice(paper)
	if err != nil {
		unclaimed.add(fmt.Errorf("notice %s of %s: %w", paper.ID, paper.Account, err))
		return false
	}
	if n != nil {
		err = e.send(n)
	}
	if err != nil && e.life.Err() == nil { // the error of a channel may hold anything, so it is not logged
		e.config.Log.Error("people could not be told", "account", paper.Account, "notice", paper.ID, "tries", tried(paper)+1, "again", !errors.Is(err, errUntold))
	}
	return err == nil
}

// errUntold says that a notice is not tried again.
var errUntold = errors.New("executor: a notice is given up")

// claimedNotice is a notice that this process sends, and no other does as long as the claim lasts.
type claimedNotice struct {
	paper store.Paper
	tries int       // with this one
	now   time.Time // when it was claimed, by the clock of the store
	since time.Time // the same, by the clock of this process
}

// after is the time of the store after a pause that begins now, however long the try took.
func (n *claimedNotice) after(pause time.Duration) time.Time {
	return n.now.Add(time.Since(n.since) + pause)
}

// claimNotice returns nil if another process has it.
func (e *Executor) claimNotice(paper store.Paper) (*claimedNotice, error) {
	now, err := e.store.Now(e.life)
	n := &claimedNotice{paper: paper, tries: tried(paper) + 1, now: now, since: time.Now()}
	if err == nil {
		err = e.note(e.life, &n.paper, delivery{Tries: n.tries}, now.Add(tellLease))
	}
	switch {
	case errors.Is(err, store.ErrStale):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return n, nil
}

// send sends one notice, and notes what became of it.
func (e *Executor) send(n *claimedNotice) error {
	var notice desk.Notice
	if err := e.readBody(n.paper, &notice); err != nil {
		return errors.Join(err, e.note(e.life, &n.paper, delivery{n.tries, failedToTell}, n.after(tellMost)))
	}
	request, unknown := e.requestOf(e.life, n.paper.Account, notice.Request)
	over := unknown == nil && (request == nil || isOver(request.Request, notice))
	switch {
	case over && invites(notice): //mutate:no-page-after-decision
		if n.tries > 1 { // a process that died may have sent it
			return e.told(&n.paper, notice, delivery{n.tries, moot}, unseen)
		}
		return e.note(e.life, &n.paper, delivery{n.tries, moot}, time.Time{})
	case unknown == nil && !over && request.Void(notice): //mutate:no-page-while-snoozed
		return e.note(e.life, &n.paper, delivery{n.tries, moot}, time.Time{})
	}
	seen := int64(unseen)
	if request != nil {
		seen = request.revision
	}
	ctx, cancel := context.WithTimeout(e.life, tellTimeout)
	defer cancel()
	err := e.tell(ctx, n.paper.Account, notice)
	e.stats.delivered(err)
	if err == nil {
		return e.told(&n.paper, notice, delivery{n.tries, told}, seen)
	}
	if over && n.tries >= tellTries { // or what a channel never takes would be tried for ever
		return errors.Join(errUntold, e.note(e.life, &n.paper, delivery{n.tries, failedToTell}, time.Time{}))
	}
	return errors.Join(err, e.note(e.life, &n.paper, delivery{n.tries, failedToTell}, n.after(min(time.Second<<min(n.tries-1, 20), tellMost))))
}

// isOver reports whether a request is over, or the one that a page was for: its question may have been asked again since.
func isOver(request desk.Request, notice desk.Notice) bool {
	//mutate:page-of-old-incident
	return request.State != desk.Open || notice.Incident != "" && notice.Incident != request.Incident()
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
	moot         result = "moot" // the request was over, or its route begun anew, before the notice was sent
)

// tried is how often it was tried to send a notice.
func tried(paper store.Paper) int {
	var facts delivery
	if json.Unmarshal(paper.Facts, &facts) != nil {
		return 0
	}
	return facts.Tries
}

// unseen is in the place of the revision of a request if nobody knows what was shown of it.
const unseen = -1

// told notes that a notice was sent, in the transaction in which its request learns of the delivery: a deadline may count from there. seen is the revision that the
// request had before.
func (e *Executor) told(paper *store.Paper, notice desk.Notice, became delivery, seen int64) error {
	for try, name := 0, ""; ; try++ {
		beside, err := e.reached(paper.Account, notice, name, seen)
		if err != nil {
			return err
		}
		if name == "" {
			change, err := e.noted(*paper, became, time.Time{})
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
			//mutate:late-page-resolved
			if became.Result != told || notice.Kind != desk.Page && !draws(notice) {
				return nil // sending it twice does no harm
			}
			// It was sent late. The other process may have found the request over, and sent the all-clear before this page, or drawn the end before this copy.
			name = fmt.Sprintf("-%d", became.Tries)
		}
		if err := backOff(e.life, try); err != nil {
			return err
		}
	}
}

// reached adds to a request whom a notice has reached. If the request is over, it posts the all-clear instead. What was drawn of a request that has changed since it was
// seen is drawn once more: whoever drew the change may have been faster. name tells an all-clear from that of another process.
func (e *Executor) reached(account string, notice desk.Notice, name string, seen int64) (store.Beside, error) {
	if !invites(notice) {
		if outdated, err := e.outdated(account, notice, seen); !outdated || err != nil {
			return store.Beside{}, err
		}
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
		e.config.Log.Error("people were told of a request that cannot be read", "account", account, "request", notice.Request, "err", err)
		return store.Beside{}, nil
	}
	c, err := e.filingFor(e.life, asked)
	if err != nil {
		return store.Beside{}, err
	}
	if draws(notice) && known.revision != seen {
		err = e.drawAgain(c, notice, known)
	}
	if err != nil || notice.Kind == desk.Rerender {
		return c.Beside, err
	}
	if isOver(known.Request, notice) {
		err := e.post(c, allClear(notice, name), known.revision)
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

// draws reports whether a notice leaves a copy of its request behind.
func draws(n desk.Notice) bool {
	return n.Kind == desk.Notify || n.Kind == desk.Remind || n.Kind == desk.Rerender
}

// outdated reports whether a request was drawn as it is not any more.
func (e *Executor) outdated(account string, notice desk.Notice, seen int64) (bool, error) {
	if !draws(notice) {
		return false, nil
	}
	now, err := e.store.Paper(e.life, account, store.RequestPaper, notice.Request)
	if isNotFound(err) {
		return false, nil // its run was forgotten
	}
	return now.Revision != seen, err // who does not know does not note that it was told: it is sent again
}

// drawAgain has a request drawn once more, unless somebody is going to, who has not begun. Or each copy that is under way while a request changes and changes would be
// followed by one of its own, each time, until they have all places.
func (e *Executor) drawAgain(c *filing, drawn desk.Notice, now *requested) error {
	again := desk.Notice{Request: now.ID, Rev: now.Rev, Kind: desk.Rerender, Epoch: now.Place.Epoch, About: drawn.About}
	for n := 1; ; n++ {
		again.Key = fmt.Sprintf("%s/again%d", url.PathEscape(now.ID), n)
		paper, err := e.store.Paper(e.life, c.run.Account, noticePaper, noticeKey(again, now.revision))
		switch {
		case isNotFound(err):
			return e.post(c, []desk.Notice{again}, now.revision)
		case err != nil || tried(paper) == 0:
			return err
		}
	}
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
