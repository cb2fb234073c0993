package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
)

// sendResult is what became of an attempt.
type sendResult int

const (
	settled   sendResult = iota // it was sent, or is obsolete
	willRetry                   // it is tried again
	gaveUp                      // it is not tried again
)

// errNoChannel says that this process does not have the channel of a delivery. Another process may.
var errNoChannel = &channel.Error{Code: "no_channel"}

// send sends the current state of a request, and records what became of it. The error is that of
// the channel or the store.
func (o *Sender) send(d *claimed) (result sendResult, err error) {
	called := false
	defer func() {
		if result == willRetry {
			o.stats.NoteRetry(d.index.Channel, d.document.ID, time.Now().Add(2*max(backoff(d.index.Attempts), channelerror.RetryAfter(err))+claimLease))
		} else {
			o.stats.NoteSettled(d.index.Channel, d.document.ID, result == gaveUp)
			o.endOutage(d, called && err == nil)
		}
	}()
	if err := o.docs.DecodeBody(d.document, &d.body); err != nil {
		return willRetry, errors.Join(err, o.recordAttempt(d, docs.DeliveryFailed, "unreadable", d.storeNow().Add(maxRetryBackoff)))
	}
	notice := d.body.Notice
	request, unreadable := o.docs.Request(o.background.Ctx, d.document.Account, notice.Request)
	over := unreadable == nil && (request == nil || isRequestOver(request.Request, notice))
	ctx, cancel := context.WithTimeout(o.background.Ctx, sendTimeout)
	defer cancel()
	through := o.channelOf(d.index.Channel)
	m := channel.Message{
		Account: d.document.Account, Delivery: d.document.ID, Attempt: d.index.Attempts, Kind: notice.Kind, To: d.body.To,
		Incident: notice.Incident, Severity: notice.Severity, Notice: notice,
	}
	if m.Card, err = o.card(d, request); err != nil {
		return o.recordFailed(d, request, over, err)
	}
	if d.body.Ref == "" && d.index.Attempts > 1 && leavesCopy(notice) {
		if err := o.find(ctx, through, d, m); err != nil {
			return o.recordFailed(d, request, over, err)
		}
	}
	if d.body.Ref == "" {
		switch {
		case over && isInvitation(notice): //mutate:no-page-after-decision
			return settled, o.recordSettled(d, request, docs.DeliveryObsolete, false)
		case unreadable == nil && !over && request.IsObsolete(notice): //mutate:no-page-while-snoozed
			return settled, o.recordSettled(d, request, docs.DeliveryObsolete, false)
		}
	}
	if request == nil && unreadable == nil { // its run was deleted
		return settled, o.recordSettled(d, nil, docs.DeliveryObsolete, false)
	}
	if m.Ref = d.body.Ref; m.Ref != "" {
		m.Kind = desk.NoticeRerender
	} else if m.Kind == desk.NoticeRemind {
		if m.Again, err = o.hasCopy(ctx, d); err != nil {
			return o.recordFailed(d, request, over, err)
		}
	}
	began := time.Now()
	ref, err := o.callChannel(ctx, through, m)
	if err == nil {
		d.body.Ref = ref
	}
	called = true
	o.stats.NoteDelivery(d.index.Channel, time.Since(began), err)
	if err != nil {
		return o.recordFailed(d, request, over, err)
	}
	return settled, o.recordSettled(d, request, docs.DeliverySent, over)
}

// hasCopy reports whether another delivery left a copy of the request at the same address.
func (o *Sender) hasCopy(ctx context.Context, d *claimed) (bool, error) {
	all, err := o.requestDeliveries(ctx, d.document.Account, d.document.Run, d.index.Request)
	if err != nil {
		return false, err
	}
	for _, other := range all {
		if other.ID == d.document.ID {
			continue
		}
		index, body, err := o.readDelivery(other)
		if err != nil {
			return false, err
		}
		if index.Copy && index.Channel == d.index.Channel && body.To == d.body.To {
			return true, nil
		}
	}
	return false, nil
}

// find looks for a copy whose response was lost, and sets its reference.
func (o *Sender) find(ctx context.Context, through channel.Channel, d *claimed, m channel.Message) (err error) {
	defer recovery.Recover(&err)
	finder, ok := through.(channel.Finder)
	if !ok {
		return nil
	}
	ref, found, err := finder.Find(ctx, m)
	if found && err == nil {
		d.body.Ref = ref
	}
	return err
}

// callChannel calls a channel, which may panic.
func (o *Sender) callChannel(ctx context.Context, through channel.Channel, m channel.Message) (ref string, err error) {
	defer recovery.Recover(&err)
	if through == nil {
		return "", errNoChannel
	}
	return through.Send(ctx, m)
}

// card makes the card of a request. An unreadable request has a card that says so.
func (o *Sender) card(d *claimed, request *docs.Request) (channel.Card, error) {
	linkOnly := false
	if request != nil && len(request.Requirement.VisibleTo) > 0 {
		sees, err := o.readerSees(request.Request, d.body.Person)
		if err != nil {
			return channel.Card{}, err
		}
		linkOnly = !sees
	}
	return o.cardOf(o.background.Ctx, d.document.Account, d.body.Notice.Request, request, linkOnly, d.storeNow())
}

// readerSees reports whether the person at an address may see a restricted request. The readers of
// other addresses, such as channels, are not known.
func (o *Sender) readerSees(request desk.Request, person string) (bool, error) {
	if person == "" {
		return false, nil
	}
	return o.requests.MaySee(request, desk.Viewer{ID: person, Kind: desk.ActorHuman})
}

// Card returns the card of a request for webhooks, or store.ErrNotFound. That of a restricted
// request only links to it.
func (o *Sender) Card(ctx context.Context, account, id string) (channel.Card, error) {
	now, err := o.store.Now(ctx)
	if err != nil {
		return channel.Card{}, err
	}
	request, unreadable := o.docs.Request(ctx, account, id)
	if request == nil && unreadable == nil {
		return channel.Card{}, store.ErrNotFound
	}
	if unreadable != nil {
		request = nil
	}
	return o.cardOf(ctx, account, id, request, request != nil && len(request.Requirement.VisibleTo) > 0, now)
}

func (o *Sender) cardOf(ctx context.Context, account, id string, request *docs.Request, linkOnly bool, now time.Time) (channel.Card, error) {
	unreadable := channel.Card{Request: id, Presentation: api.Presentation{Title: "Request cannot be read", Sentence: "A request cannot be read by this server."}, Link: channel.RequestURL(o.config.BaseURL, id), At: now}
	if request == nil {
		return unreadable, nil
	}
	item, err := o.store.InboxItem(ctx, account, id)
	if err != nil && !docs.IsNotFound(err) {
		return channel.Card{}, err
	}
	var data json.RawMessage
	if err == nil {
		if data, err = o.store.Data(item.Interrupt); err != nil {
			return unreadable, nil
		}
	}
	return channel.NewCard(channel.Source{
		Request: request.Request, Data: data, Address: item.Address, AnswerSchema: item.AnswerSchema, Agent: item.Graph, Environment: o.config.Environment, BaseURL: o.config.BaseURL, LinkOnly: linkOnly, Now: now,
	}), nil
}

// recordFailed records an attempt that failed.
func (o *Sender) recordFailed(d *claimed, request *docs.Request, over bool, failure error) (sendResult, error) {
	if o.background.Ctx.Err() != nil { // this process stops, and another one sends it
		return willRetry, errors.Join(failure, o.recordAttempt(d, docs.DeliveryFailed, "stopped", d.storeNow()))
	}
	result, state := willRetry, docs.DeliveryFailed
	pause := o.outages.pause(d.index.Channel, deliveryRef{d.document.Account, d.document.ID}, d.index.Attempts, failure)
	next := d.storeNow().Add(pause)
	// otherwise a notice that a channel never accepts would be tried without end
	if channelerror.IsPermanent(failure) || over && d.index.Attempts >= maxAttemptsAfterEnd && d.endedFor(request) >= minAfterEnd {
		result, state, next = gaveUp, docs.DeliveryDead, time.Time{}
	}
	code := desk.NoticeFailureCode(failure)
	var err error
	if result == gaveUp && code == channel.CodeGone && d.body.Person != "" {
		err = o.forgetAddress(o.background.Ctx, d.document.Account, d.body.Person, d.index.Channel, d.body.To)
	}
	if request != nil && d.body.Ref == "" && (d.index.Attempts == 1 || result == gaveUp) {
		err = errors.Join(err, o.recordUnreached(d, request.Request, code, next))
	}
	return result, errors.Join(failure, err, o.recordAttempt(d, state, code, next))
}

// recordUnreached adds to a request that a notice could not be delivered: after the first attempt,
// and after the last.
func (o *Sender) recordUnreached(d *claimed, request desk.Request, code string, next time.Time) error {
	notice := d.body.Notice
	if notice.Incident != "" && notice.Incident != request.IncidentKey() {
		return nil // it was for a request that was asked again since
	}
	_, err := o.requests.Act(o.background.Ctx, d.document.Account, notice.Request, desk.RecordNoticeFailure{
		Kind: notice.Kind, Target: d.body.Label(d.index.Channel), Code: code, Attempt: d.index.Attempts, Next: next,
	})
	if docs.IsNotFound(err) {
		return nil // its run was deleted
	}
	return err
}
