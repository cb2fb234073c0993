package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
)

// claimed is a delivery that this process sends, and no other does as long as the claim lasts.
type claimed struct {
	document store.Document
	index    docs.DeliveryIndex
	body     docs.Delivery
	now      time.Time // when it was claimed, by the clock of the store
	since    time.Time // the same, by the clock of this process
}

// storeNow is the current time of the store.
func (d *claimed) storeNow() time.Time { return d.now.Add(time.Since(d.since)) }

// deliveryID returns the id of the delivery of a notice to an address. It starts with the escaped
// id of the request.
func deliveryID(notice desk.Notice, kind, to string) string {
	return notice.Key + "#" + ident.Derive("d", kind, to)
}

// requestPrefix is the prefix of the ids of the deliveries of a request.
func requestPrefix(request string) string { return url.PathEscape(request) + "/" }

// newDelivery returns the document of a new delivery.
func newDelivery(run string, notice desk.Notice, a address, due time.Time) (store.DocumentChange, error) {
	notice.Targets = nil
	body, err := json.Marshal(docs.Delivery{Notice: notice, Target: a.Target, Person: a.Person, To: a.To})
	if err != nil {
		return store.DocumentChange{}, err
	}
	index, err := json.Marshal(docs.DeliveryIndex{Channel: a.Channel, State: docs.DeliveryQueued, Request: notice.Request, Kind: notice.Kind})
	return store.DocumentChange{Kind: docs.DeliveryKind, ID: deliveryID(notice, a.Channel, a.To), Run: run, Body: body, Index: index, DueAt: due}, err
}

// claim returns nil if another process has the delivery.
func (o *Sender) claim(document store.Document) (*claimed, error) {
	now, err := o.store.Now(o.background.Ctx)
	if err != nil {
		return nil, err
	}
	d := &claimed{document: document, now: now, since: time.Now()}
	if err := json.Unmarshal(document.Index, &d.index); err != nil {
		return nil, err
	}
	d.index.Claims++
	d.index.Attempts++
	d.index.Sending, d.index.Stale = true, false
	err = o.docs.UpdateIndex(o.background.Ctx, &d.document, d.index, now.Add(claimLease))
	if errors.Is(err, store.ErrStale) {
		return nil, nil
	}
	return d, err
}

// channelOf returns the channel of a delivery, or nil if this process has none.
func (o *Sender) channelOf(kind string) channel.Channel { return o.channels[kind] }

// requestDeliveries returns the deliveries of a request.
func (o *Sender) requestDeliveries(ctx context.Context, account, run, request string) (all []store.Document, err error) {
	prefix := requestPrefix(request)
	for document, err := range o.docs.Documents(ctx, account, docs.DeliveryKind, store.DocumentFilter{Run: run, After: prefix, Limit: 100}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(document.ID, prefix) {
			break
		}
		all = append(all, document)
	}
	return all, nil
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

// leavesCopy reports whether a notice leaves a copy of its request behind, which is replaced when
// the request changes.
func leavesCopy(n desk.Notice) bool {
	return n.Kind == desk.NoticeNotify || n.Kind == desk.NoticeRemind
}

// version identifies what a copy shows. A request that is asked again under the same id has other
// versions.
func version(r desk.Request) string {
	return ident.Derive("v", r.IncidentKey(), strconv.FormatInt(r.DisplayRev(), 10))
}
