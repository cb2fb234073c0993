package outbox

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// The results of a notice.
const (
	noticeExpanded requests.DeliveryResult = "expanded"
	noticeFailed   requests.DeliveryResult = "failed"
	// the request was over, or its route restarted, before the notice was expanded
	noticeObsolete requests.DeliveryResult = "obsolete"
)

// errRunDeleted says that the run of a notice was deleted.
var errRunDeleted = errors.New("executor: the run was deleted")

// expand turns a notice into its deliveries, in one transaction. A notice that cannot be read is
// put off.
func (o *Sender) expand(document store.Document) error {
	var index requests.DeliveryIndex
	_ = json.Unmarshal(document.Index, &index) // without an index it is the first attempt
	index.Attempts++
	var notice desk.Notice
	err := o.docs.DecodeBody(document, &notice)
	for try := 0; err == nil; try++ {
		if err = o.expandOnce(document, index, notice); !errors.Is(err, store.ErrStale) {
			break
		}
		// the request was changed, or another process has expanded the notice
		now, failure := o.store.Document(o.background.Ctx, document.Account, document.Kind, document.ID)
		if docs.IsNotFound(failure) || failure == nil && now.Revision != document.Revision {
			return nil
		}
		if err = failure; err == nil {
			err = retry.BackOff(o.background.Ctx, try)
		}
	}
	if errors.Is(err, errRunDeleted) {
		return nil
	}
	if err != nil && o.background.Ctx.Err() == nil {
		index.Result = noticeFailed
		if now, failure := o.store.Now(o.background.Ctx); failure == nil {
			_ = o.docs.UpdateIndex(o.background.Ctx, &document, index, now.Add(backoff(index.Attempts))) // the error is logged
		}
	}
	return err
}

func (o *Sender) expandOnce(document store.Document, index requests.DeliveryIndex, notice desk.Notice) error {
	item, err := o.store.InboxItem(o.background.Ctx, document.Account, notice.Request)
	if docs.IsNotFound(err) {
		return errRunDeleted
	}
	if err != nil {
		return err
	}
	c, err := o.requests.WorkFor(o.background.Ctx, item)
	if err != nil {
		return err
	}
	request, err := o.docs.Request(o.background.Ctx, document.Account, notice.Request)
	switch {
	case err != nil: // people are told that there is an unreadable request
		request = nil
	case request == nil:
		return errRunDeleted
	}
	index.Result = noticeExpanded
	over := request != nil && isRequestOver(request.Request, notice)
	switch {
	case notice.Kind == desk.NoticeRerender:
		err = o.markCopiesDue(c, notice, request)
	case over && isInvitation(notice),
		request != nil && !over && request.IsObsolete(notice):
		index.Result, err = noticeObsolete, nil
	default:
		err = o.addDeliveries(c, notice, request)
	}
	if err != nil {
		return err
	}
	change, err := o.docs.IndexChange(document, index, time.Time{})
	if err != nil {
		return err
	}
	c.Documents = append(c.Documents, change)
	return o.store.CommitWrites(o.background.Ctx, document.Account, c.Writes)
}

// addDeliveries adds a delivery for each address of a notice. Targets that people find in the inbox
// count as delivered; targets and people that are not reached are recorded in the request.
func (o *Sender) addDeliveries(c *txn.Tx, notice desk.Notice, request *docs.Request) error {
	x := expansion{sender: o, account: c.Run.Account, run: c.Run.ID, notice: notice, now: c.Now}
	if request != nil {
		x.request = &request.Request
	}
	if err := x.expand(o.background.Ctx); err != nil {
		return err
	}
	for _, a := range x.addresses {
		due := c.Now
		if a.NotBefore.After(due) {
			due = a.NotBefore
		}
		change, err := newDelivery(c.Run.ID, notice, a, due)
		if err != nil {
			return err
		}
		c.Documents = append(c.Documents, change)
	}
	if request == nil || !isInvitation(notice) {
		return nil
	}
	var commands []desk.Command
	for _, target := range x.inInbox {
		commands = append(commands, desk.RecordDelivery{Target: target, At: c.Now})
	}
	for _, u := range x.unreached {
		commands = append(commands, desk.RecordNoticeFailure{Kind: notice.Kind, Target: u.target, Code: u.code, Attempt: 1})
	}
	return o.applyAll(c, request, commands)
}

// applyAll adds the changes of some commands to a unit of work.
func (o *Sender) applyAll(c *txn.Tx, stored *docs.Request, commands []desk.Command) error {
	request := stored.Request
	var changes []desk.Change
	for _, command := range commands {
		change, err := desk.Apply(request, command, o.requests.DeskEnv(c.Now))
		if err != nil {
			return err
		}
		if change.Changed() {
			request, changes = change.Request, append(changes, change)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return o.requests.AddChanges(c, changes, stored.Revision)
}

// markCopiesDue makes every copy of a request due that shows an older version. A copy that is being
// sent is due again afterwards.
func (o *Sender) markCopiesDue(c *txn.Tx, notice desk.Notice, request *docs.Request) error {
	if request == nil {
		return nil
	}
	current := version(request.Request)
	all, err := o.requestDeliveries(o.background.Ctx, c.Run.Account, c.Run.ID, notice.Request)
	if err != nil {
		return err
	}
	for _, document := range all {
		var index docs.DeliveryIndex
		if err := json.Unmarshal(document.Index, &index); err != nil {
			return err
		}
		due := document.DueAt
		switch {
		case index.Sending && !index.Stale:
			index.Stale = true
		case !index.Sending && index.Copy && index.Shows != current && due.IsZero():
			due = c.Now
		default:
			continue
		}
		change, err := o.docs.IndexChange(document, index, due)
		if err != nil {
			return err
		}
		c.Documents = append(c.Documents, change)
	}
	return nil
}

// backoff is the pause after so many failed attempts.
func backoff(attempts int) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 20), maxRetryBackoff)
}
