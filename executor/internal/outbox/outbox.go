package outbox

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
	"github.com/fermata-go/fermata/executor/internal/background"
	"github.com/fermata-go/fermata/executor/internal/docs"
	"github.com/fermata-go/fermata/executor/internal/requests"
	"github.com/fermata-go/fermata/executor/internal/retry"
	"github.com/fermata-go/fermata/executor/internal/txn"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/store"
)

const (
	notifyTimeout    = 30 * time.Second // how long sending one notice may take
	batchPatience    = 2 * time.Second  // how long those that come next are held up for it
	noticeLease      = time.Minute      // after which another process may send it
	maxNoticeBackoff = time.Hour        // the longest pause between two tries
	// how often it is tried if the request is over: for about three days
	maxAttemptsAfterEnd = 84
)

// OutboxLoop sends due notices, many at a time. A channel that hangs delays the next batch only for
// a short time; otherwise notices are sent in order. Each notice is claimed by its revision before
// it is sent, so one of several processes sends it; if that process fails, another one sends it
// when the claim has expired.
func (o *Sender) OutboxLoop() {
	// one is taken for each notice that is on its way
	places := make(chan struct{}, requests.DuePerPass)
	for !o.background.IsStopping() {
		select {
		case places <- struct{}{}: // there is room
			<-places
		case <-o.background.Stopping:
			return
		}
		room := requests.DuePerPass - len(places)
		due, err := o.store.DueDocuments(o.background.Ctx, docs.NoticeKind, room)
		o.background.LogRepeated("looking for what has to be told", err)
		var told atomic.Int64
		var unclaimed background.ErrorCount
		var group sync.WaitGroup
		for _, paper := range due {
			places <- struct{}{}
			group.Add(1)
			o.background.Tasks.Go(func() {
				defer func() { <-places; group.Done() }()
				if o.deliverNotice(paper, &unclaimed) {
					told.Add(1)
				}
			})
		}
		waitGroup(&group, batchPatience)
		o.background.LogRepeated("notice not delivered, as nothing can be written", unclaimed.Err())
		if len(due) < room || told.Load() == 0 {
			o.background.Sleep(o.config.Poll)
		}
	}
}

// waitGroup waits for a group, but no longer than atMost.
func waitGroup(group *sync.WaitGroup, atMost time.Duration) {
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

// deliverNotice claims and sends a notice, and reports whether that succeeded. It did if another
// process has the notice.
func (o *Sender) deliverNotice(paper store.Document, unclaimed *background.ErrorCount) bool {
	n, err := o.claimNotice(paper)
	if err != nil {
		unclaimed.Add(fmt.Errorf("notice %s of %s: %w", paper.ID, paper.Account, err))
		return false
	}
	if n != nil {
		err = o.sendNotice(n)
	}
	// the error of a channel may hold anything, so it is not logged
	if err != nil && o.background.Ctx.Err() == nil {
		o.config.Log.Error("notice not delivered", "account", paper.Account, "notice", paper.ID, "tries", attemptsOf(paper)+1, "again", !errors.Is(err, errNoticeDropped))
	}
	return err == nil
}

// errNoticeDropped says that a notice is not tried again.
var errNoticeDropped = errors.New("executor: notice dropped")

// claimedNotice is a notice that this process sends, and no other does as long as the claim lasts.
type claimedNotice struct {
	document store.Document
	attempts int       // with this one
	now      time.Time // when it was claimed, by the clock of the store
	since    time.Time // the same, by the clock of this process
}

// nextAttempt is the time of the store after a pause that begins now, however long the try took.
func (n *claimedNotice) nextAttempt(pause time.Duration) time.Time {
	return n.now.Add(time.Since(n.since) + pause)
}

// claimNotice returns nil if another process has it.
func (o *Sender) claimNotice(paper store.Document) (*claimedNotice, error) {
	now, err := o.store.Now(o.background.Ctx)
	n := &claimedNotice{document: paper, attempts: attemptsOf(paper) + 1, now: now, since: time.Now()}
	if err == nil {
		err = o.docs.UpdateIndex(o.background.Ctx, &n.document, requests.DeliveryIndex{Attempts: n.attempts}, now.Add(noticeLease))
	}
	switch {
	case errors.Is(err, store.ErrStale):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return n, nil
}

// sendNotice sends one notice, and notes what became of it.
func (o *Sender) sendNotice(n *claimedNotice) error {
	var notice desk.Notice
	if err := o.docs.DecodeBody(n.document, &notice); err != nil {
		return errors.Join(err, o.docs.UpdateIndex(o.background.Ctx, &n.document, requests.DeliveryIndex{Attempts: n.attempts, Result: deliveryFailed}, n.nextAttempt(maxNoticeBackoff)))
	}
	request, unknown := o.docs.Request(o.background.Ctx, n.document.Account, notice.Request)
	over := unknown == nil && (request == nil || isRequestOver(request.Request, notice))
	switch {
	case over && isInvitation(notice): //mutate:no-page-after-decision
		if n.attempts > 1 { // a process that died may have sent it
			return o.recordDelivery(&n.document, notice, requests.DeliveryIndex{Attempts: n.attempts, Result: deliveryObsolete}, unknownRevision)
		}
		return o.docs.UpdateIndex(o.background.Ctx, &n.document, requests.DeliveryIndex{Attempts: n.attempts, Result: deliveryObsolete}, time.Time{})
	case unknown == nil && !over && request.IsObsolete(notice): //mutate:no-page-while-snoozed
		return o.docs.UpdateIndex(o.background.Ctx, &n.document, requests.DeliveryIndex{Attempts: n.attempts, Result: deliveryObsolete}, time.Time{})
	}
	seen := int64(unknownRevision)
	if request != nil {
		seen = request.Revision
	}
	ctx, cancel := context.WithTimeout(o.background.Ctx, notifyTimeout)
	defer cancel()
	err := o.notify(ctx, n.document.Account, notice)
	failure := err
	o.stats.NoteDelivery(err)
	if err == nil {
		return o.recordDelivery(&n.document, notice, requests.DeliveryIndex{Attempts: n.attempts, Result: delivered}, seen)
	}
	next := n.nextAttempt(min(time.Second<<min(n.attempts-1, 20), maxNoticeBackoff))
	// otherwise a notice that a channel never accepts would be tried without end
	if over && n.attempts >= maxAttemptsAfterEnd {
		err, next = errNoticeDropped, time.Time{}
	}
	if request != nil && (n.attempts == 1 || next.IsZero()) && o.background.Ctx.Err() == nil {
		err = errors.Join(err, o.recordFailure(n, notice, request.Request, failure, next))
	}
	return errors.Join(err, o.docs.UpdateIndex(o.background.Ctx, &n.document, requests.DeliveryIndex{Attempts: n.attempts, Result: deliveryFailed}, next))
}

// recordFailure adds to a request that a notice could not be delivered: after the first attempt,
// and after the last.
func (o *Sender) recordFailure(n *claimedNotice, notice desk.Notice, request desk.Request, failure error, next time.Time) error {
	if notice.Incident != "" && notice.Incident != request.IncidentKey() {
		return nil // it was for a request that was asked again since
	}
	for _, target := range notice.Targets {
		_, err := o.requests.Act(o.background.Ctx, n.document.Account, notice.Request, desk.RecordNoticeFailure{
			Kind: notice.Kind, Target: target, Code: desk.NoticeFailureCode(failure), Attempt: n.attempts, Next: next,
		})
		if errors.Is(err, store.ErrNotFound) {
			return nil // its run was forgotten
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isRequestOver reports whether a request is over, or the one that a page was for: its question may
// have been asked again since.
func isRequestOver(request desk.Request, notice desk.Notice) bool {
	//mutate:page-of-old-incident
	return request.State != desk.StateOpen || notice.Incident != "" && notice.Incident != request.IncidentKey()
}

// isInvitation reports whether a notice asks people to look at a request. There is no use in
// sending it once the request is over.
func isInvitation(n desk.Notice) bool {
	return n.Kind == desk.NoticeNotify || n.Kind == desk.NoticeRemind || n.Kind == desk.NoticePage
}

// notify calls Notify, which may panic.
func (o *Sender) notify(ctx context.Context, account string, notice desk.Notice) (err error) {
	defer recovery.Recover(&err)
	return o.config.Notify(ctx, account, notice)
}

const (
	delivered      requests.DeliveryResult = "told"
	deliveryFailed requests.DeliveryResult = "failed"
	// the request was over, or its route restarted, before the notice was sent
	deliveryObsolete requests.DeliveryResult = "moot"
)

// attemptsOf is how often it was tried to send a notice.
func attemptsOf(paper store.Document) int {
	var facts requests.DeliveryIndex
	if json.Unmarshal(paper.Index, &facts) != nil {
		return 0
	}
	return facts.Attempts
}

// unknownRevision is used for a request whose shown revision is unknown.
const unknownRevision = -1

// recordDelivery records that a notice was sent, in the transaction in which its request learns of
// the delivery: a deadline may count from there. seen is the revision that the request had before.
func (o *Sender) recordDelivery(paper *store.Document, notice desk.Notice, became requests.DeliveryIndex, seen int64) error {
	for try, name := 0, ""; ; try++ {
		beside, err := o.deliveryWrites(paper.Account, notice, name, seen)
		if err != nil {
			return err
		}
		if name == "" {
			change, err := o.docs.IndexChange(*paper, became, time.Time{})
			if err != nil {
				return err
			}
			beside.Documents = append(beside.Documents, change)
		}
		if len(beside.Documents) == 0 {
			return nil
		}
		if err = o.store.CommitWrites(o.background.Ctx, paper.Account, beside); !errors.Is(err, store.ErrStale) {
			return err
		}
		// The request was changed; or the claim had expired, and another process has the notice.
		now, err := o.store.Document(o.background.Ctx, paper.Account, paper.Kind, paper.ID)
		if err != nil {
			return err
		}
		if now.Revision != paper.Revision {
			//mutate:late-page-resolved
			if became.Result != delivered || notice.Kind != desk.NoticePage && !leavesCopy(notice) {
				return nil // sending it twice does no harm
			}
			// It was sent late. The other process may have found the request over, and sent the
			// all-clear before this page, or drawn the end before this copy.
			name = fmt.Sprintf("-%d", became.Attempts)
		}
		if err := retry.BackOff(o.background.Ctx, try); err != nil {
			return err
		}
	}
}

// deliveryWrites adds the delivery of a notice to its request. If the request is over, it adds the
// all-clear instead. A copy of a request that has changed since it was rendered is rendered again.
// name distinguishes an all-clear from that of another process.
func (o *Sender) deliveryWrites(account string, notice desk.Notice, name string, seen int64) (store.Writes, error) {
	if !isInvitation(notice) {
		if outdated, err := o.isStaleCopy(account, notice, seen); !outdated || err != nil {
			return store.Writes{}, err
		}
	}
	asked, err := o.store.InboxItem(o.background.Ctx, account, notice.Request)
	if errors.Is(err, store.ErrNotFound) {
		return store.Writes{}, nil // its run was forgotten
	}
	if err != nil {
		return store.Writes{}, err
	}
	paper, err := o.store.Document(o.background.Ctx, account, store.RequestDocument, notice.Request)
	if err != nil {
		return store.Writes{}, err
	}
	known, err := o.docs.DecodeRequest(paper)
	if err != nil { // sending it again would not help
		o.config.Log.Error("notice sent for an unreadable request", "account", account, "request", notice.Request, "err", err)
		return store.Writes{}, nil
	}
	c, err := o.requests.WorkFor(o.background.Ctx, asked)
	if err != nil {
		return store.Writes{}, err
	}
	if leavesCopy(notice) && known.Revision != seen {
		err = o.addRerender(c, notice, known)
	}
	if err != nil || notice.Kind == desk.NoticeRerender {
		return c.Writes, err
	}
	if isRequestOver(known.Request, notice) {
		err := o.requests.AddNotices(c, resolveNotice(notice, name), known.Revision)
		return c.Writes, err
	}
	request := known.Request
	var changes []desk.Change
	for _, target := range notice.Targets {
		change, err := desk.Apply(request, desk.RecordDelivery{Target: target, At: c.Now}, o.requests.DeskEnv(c.Now))
		if err != nil {
			return store.Writes{}, err
		}
		if change.Changed() {
			request, changes = change.Request, append(changes, change)
		}
	}
	if len(changes) > 0 {
		err = o.requests.AddChanges(c, changes, known.Revision)
	}
	return c.Writes, err
}

// leavesCopy reports whether a notice leaves a copy of its request behind.
func leavesCopy(n desk.Notice) bool {
	return n.Kind == desk.NoticeNotify || n.Kind == desk.NoticeRemind || n.Kind == desk.NoticeRerender
}

// isStaleCopy reports whether a request was drawn as it is not any more.
func (o *Sender) isStaleCopy(account string, notice desk.Notice, seen int64) (bool, error) {
	if !leavesCopy(notice) {
		return false, nil
	}
	now, err := o.store.Document(o.background.Ctx, account, store.RequestDocument, notice.Request)
	if docs.IsNotFound(err) {
		return false, nil // its run was forgotten
	}
	// who does not know does not note that it was told: it is sent again
	return now.Revision != seen, err
}

// addRerender renders a request again, unless such a notice exists that was not attempted yet.
// Otherwise each copy that is in flight while a request changes would be followed by one of its
// own, until they use all slots.
func (o *Sender) addRerender(c *txn.Tx, drawn desk.Notice, now *docs.Request) error {
	again := desk.Notice{Request: now.ID, Rev: now.Rev, Kind: desk.NoticeRerender, Epoch: now.RouteProgress.Epoch, Cause: drawn.Cause}
	for n := 1; ; n++ {
		again.Key = fmt.Sprintf("%s/again%d", url.PathEscape(now.ID), n)
		paper, err := o.store.Document(o.background.Ctx, c.Run.Account, docs.NoticeKind, requests.NoticeKey(again, now.Revision))
		switch {
		case docs.IsNotFound(err):
			return o.requests.AddNotices(c, []desk.Notice{again}, now.Revision)
		case err != nil || attemptsOf(paper) == 0:
			return err
		}
	}
}

// resolveNotice is sent after a page that was under way when its request ended: the all-clear that
// came with the end may have arrived before the page. It is nil for other notices. name tells
// several of one page apart.
func resolveNotice(page desk.Notice, name string) []desk.Notice {
	if page.Kind != desk.NoticePage {
		return nil
	}
	after := page
	after.Key, after.Kind, after.Severity, after.Step, after.Cause = page.Key+"/resolve"+name, desk.NoticeResolve, "", 0, desk.EventDecided
	return []desk.Notice{after}
}
