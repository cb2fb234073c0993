package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// errClaimLost says that the claim of a delivery expired, and another process has it.
var errClaimLost = errors.New("executor: claim of a delivery lost")

// update returns the change that ends a claim.
func (d *claimed) update(index docs.DeliveryIndex, due time.Time) (store.DocumentChange, error) {
	index.Sending, index.Stale = false, false
	change := store.DocumentChange{Kind: docs.DeliveryKind, ID: d.document.ID, BaseRevision: d.document.Revision, DueAt: due}
	var err error
	if change.Index, err = json.Marshal(index); err == nil {
		change.Body, err = json.Marshal(d.body)
	}
	return change, err
}

// reread reads a delivery again after a write was stale. It returns errClaimLost if another process
// has claimed it.
func (o *Sender) reread(ctx context.Context, d *claimed) error {
	now, err := o.store.Document(ctx, d.document.Account, d.document.Kind, d.document.ID)
	if err != nil {
		return err
	}
	var index docs.DeliveryIndex
	if err := json.Unmarshal(now.Index, &index); err != nil {
		return err
	}
	if index.Claims != d.index.Claims {
		return errClaimLost
	}
	d.document, d.index.Stale = now, index.Stale
	return nil
}

// recordAttempt records an attempt that failed, unless another process has the delivery.
func (o *Sender) recordAttempt(d *claimed, state docs.DeliveryState, code string, next time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.background.Ctx), background.CommitTimeout)
	defer cancel()
	for try := 0; ; try++ {
		index := d.index
		index.State, index.Code, index.Copy = state, code, d.body.Ref != ""
		change, err := d.update(index, next)
		if err == nil {
			err = o.docs.WriteDocument(ctx, d.document.Account, change)
		}
		if !errors.Is(err, store.ErrStale) {
			return err
		}
		if err = o.reread(ctx, d); errors.Is(err, errClaimLost) || docs.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = retry.BackOff(ctx, try)
		}
		if err != nil {
			return err
		}
	}
}

// recordSettled records that a delivery was sent or is obsolete, in the transaction in which its
// request learns of it: a deadline may count from there. shown is the request that was sent.
func (o *Sender) recordSettled(d *claimed, shown *docs.Request, state docs.DeliveryState, over bool) error {
	first := d.index.Sent == 0
	for try := 0; ; try++ {
		c, err := o.settledWrites(d, shown, state, first)
		if err == nil {
			err = o.store.CommitWrites(o.background.Ctx, d.document.Account, c.Writes)
		}
		if !errors.Is(err, store.ErrStale) {
			return err
		}
		// the request or the delivery was changed
		err = o.reread(o.background.Ctx, d)
		switch {
		case docs.IsNotFound(err):
			return nil // the run was deleted
		case errors.Is(err, errClaimLost):
			return o.recordLate(d, shown, state)
		case err == nil:
			err = retry.BackOff(o.background.Ctx, try)
		}
		if err != nil {
			return err
		}
	}
}

// settledWrites returns the writes of a delivery that was sent or is obsolete.
func (o *Sender) settledWrites(d *claimed, shown *docs.Request, state docs.DeliveryState, first bool) (*txn.Tx, error) {
	c, current, err := o.workOn(d)
	if err != nil {
		return nil, err
	}
	index := d.index
	attempts := index.Attempts
	index.State, index.Code, index.Attempts, index.Copy = state, "", 0, d.body.Ref != "" && leavesCopy(d.body.Notice)
	due := time.Time{}
	if state == docs.DeliverySent {
		index.Sent++
		if shown != nil {
			index.Shows, index.Revision = version(shown.Request), shown.Rev
		}
		if index.Copy && (current != nil && version(current.Request) != index.Shows || d.index.Stale && current == nil) {
			due = d.storeNow()
		}
	}
	change, err := d.update(index, due)
	if err != nil {
		return nil, err
	}
	c.Documents = append(c.Documents, change)
	notice := d.body.Notice
	if current == nil || !isInvitation(notice) || !first {
		return c, nil
	}
	switch {
	case isRequestOver(current.Request, notice):
		if state == docs.DeliverySent || attempts > 1 { // a process that died may have sent it
			err = o.requests.AddNotices(c, resolveNotice(d, ""), current.Revision)
		}
	case state == docs.DeliverySent:
		err = o.applyAll(c, current, []desk.Command{desk.RecordDelivery{Target: d.body.Target, At: c.Now}})
	}
	return c, err
}

// workOn begins a unit of work for the request of a delivery. The request is nil if it cannot be
// read, or its run was deleted.
func (o *Sender) workOn(d *claimed) (*txn.Tx, *docs.Request, error) {
	asked, err := o.store.InboxItem(o.background.Ctx, d.document.Account, d.body.Notice.Request)
	if docs.IsNotFound(err) {
		return &txn.Tx{}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := o.requests.WorkFor(o.background.Ctx, asked)
	if err != nil {
		return nil, nil, err
	}
	document, err := o.store.Document(o.background.Ctx, d.document.Account, store.RequestDocument, d.body.Notice.Request)
	if docs.IsNotFound(err) {
		return c, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	known, err := o.docs.DecodeRequest(document)
	if err != nil { // sending it again would not help
		o.config.Log.Error("notice sent for an unreadable request", "account", d.document.Account, "request", d.body.Notice.Request, "err", err)
		return c, nil, nil
	}
	return c, known, nil
}

// recordLate records a delivery that was sent after the claim had expired and another process had
// taken over. That process may have sent the all-clear before this page, posted another copy, or
// replaced the copy with a newer version.
func (o *Sender) recordLate(d *claimed, shown *docs.Request, state docs.DeliveryState) error {
	notice := d.body.Notice
	if state != docs.DeliverySent || notice.Kind != desk.NoticePage && d.body.Ref == "" {
		return nil
	}
	for try := 0; ; try++ {
		c, current, err := o.workOn(d)
		if err != nil || current == nil {
			return err
		}
		//mutate:late-page-resolved
		if notice.Kind == desk.NoticePage {
			if !isRequestOver(current.Request, notice) {
				return nil // the all-clear follows with the decision
			}
			err = o.requests.AddNotices(c, resolveNotice(d, fmt.Sprintf("-%d", d.index.Claims)), current.Revision)
		} else {
			err = o.addLateCopy(c, d)
		}
		if err == nil {
			err = o.store.CommitWrites(o.background.Ctx, d.document.Account, c.Writes)
		}
		if !errors.Is(err, store.ErrStale) {
			return err
		}
		if err := retry.BackOff(o.background.Ctx, try); err != nil {
			return err
		}
	}
}

// addLateCopy makes sure that a copy which was sent late is replaced with the current version. A
// new copy gets its own delivery.
func (o *Sender) addLateCopy(c *txn.Tx, d *claimed) error {
	document, err := o.store.Document(o.background.Ctx, d.document.Account, d.document.Kind, d.document.ID)
	if docs.IsNotFound(err) {
		return nil
	}
	var body docs.Delivery
	var index docs.DeliveryIndex
	if err == nil {
		err = errors.Join(o.docs.DecodeBody(document, &body), json.Unmarshal(document.Index, &index))
	}
	if err != nil {
		return err
	}
	if body.Ref == d.body.Ref {
		due := c.Now
		if index.Sending {
			index.Stale, due = true, document.DueAt
		}
		index.Shows = "" // unknown
		change, err := o.docs.IndexChange(document, index, due)
		c.Documents = append(c.Documents, change)
		return err
	}
	index = docs.DeliveryIndex{Channel: d.index.Channel, State: docs.DeliverySent, Kind: d.index.Kind, Request: d.index.Request, Sent: 1, Copy: true}
	change := store.DocumentChange{Kind: docs.DeliveryKind, ID: fmt.Sprintf("%s-%d", d.document.ID, d.index.Claims), Run: c.Run.ID, DueAt: c.Now}
	if change.Index, err = json.Marshal(index); err == nil {
		change.Body, err = json.Marshal(d.body)
	}
	c.Documents = append(c.Documents, change)
	return err
}

// resolveNotice is sent after a page that was in flight when its request ended: the all-clear that
// came with the end may have arrived before the page. It is nil for other notices. name tells
// several of one page apart.
func resolveNotice(d *claimed, name string) []desk.Notice {
	page := d.body.Notice
	if page.Kind != desk.NoticePage {
		return nil
	}
	after := page
	after.Key, after.Kind, after.Severity, after.Step, after.Cause = d.document.ID+"/resolve"+name, desk.NoticeResolve, "", 0, desk.EventDecided
	after.Targets = []string{d.body.Target}
	return []desk.Notice{after}
}
