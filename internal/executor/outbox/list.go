package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// DeliveryFilter selects deliveries. Empty fields select all.
type DeliveryFilter struct {
	Request, Channel string
	State            docs.DeliveryState
	// After is the id of the last delivery of the previous page. Limit is the page size.
	After string
	Limit int
}

// DeliveryView is a delivery for operators.
type DeliveryView struct {
	ID string
	docs.DeliveryIndex
	docs.Delivery
	Created, Updated time.Time
	// Next is when it is sent next; zero if never.
	Next       time.Time
	Unreadable bool
}

// maxScanned is how many documents one page reads at most.
const maxScanned = 2000

// Deliveries returns a page of deliveries in the order of their ids, and the id to continue after;
// "" at the end. A page may have fewer items than the limit although there are more.
func (o *Sender) Deliveries(ctx context.Context, account string, f DeliveryFilter) (page []DeliveryView, next string, err error) {
	scanned := 0
	for document, err := range o.docs.Documents(ctx, account, docs.DeliveryKind, store.DocumentFilter{After: f.After, Limit: 200}) {
		if err != nil {
			return nil, "", err
		}
		if len(page) == f.Limit || scanned == maxScanned {
			return page, f.After, nil
		}
		scanned++
		f.After = document.ID
		v, err := o.viewOf(ctx, document)
		if err != nil {
			return nil, "", err
		}
		if (f.Request == "" || v.DeliveryIndex.Request == f.Request) && (f.Channel == "" || v.Channel == f.Channel) && (f.State == "" || v.State == f.State) {
			page = append(page, v)
		}
	}
	return page, "", nil
}

func (o *Sender) viewOf(ctx context.Context, document store.Document) (DeliveryView, error) {
	v := DeliveryView{ID: document.ID, Created: document.Created, Updated: document.Updated, Next: document.DueAt}
	if err := json.Unmarshal(document.Index, &v.DeliveryIndex); err != nil {
		return v, err
	}
	v.Unreadable = o.docs.DecodeBody(document, &v.Delivery) != nil
	if labeler, ok := o.channels[v.Channel].(channel.AddressLabeler); ok {
		v.To = labeler.AddressLabel(v.To)
	}
	if v.State == docs.DeliverySent && v.Person != "" {
		request, err := o.docs.Request(ctx, document.Account, v.DeliveryIndex.Request)
		if err == nil && request != nil && slices.ContainsFunc(request.Views, func(view desk.ViewRecord) bool { return view.By == v.Person }) {
			v.State = docs.DeliverySeen
		}
	}
	return v, nil
}

// SendAgain makes a delivery due now. It returns store.ErrNotFound if there is none.
func (o *Sender) SendAgain(ctx context.Context, account, id string) (DeliveryView, error) {
	for {
		document, err := o.store.Document(ctx, account, docs.DeliveryKind, id)
		if err != nil {
			return DeliveryView{}, err
		}
		var index docs.DeliveryIndex
		if err := json.Unmarshal(document.Index, &index); err != nil {
			return DeliveryView{}, err
		}
		now, err := o.store.Now(ctx)
		if err != nil {
			return DeliveryView{}, err
		}
		if index.Sending && now.Before(document.DueAt) { // it is being sent
			return o.viewOf(ctx, document)
		}
		index.State, index.Attempts, index.Code = docs.DeliveryQueued, 0, ""
		if err = o.docs.UpdateIndex(ctx, &document, index, now); errors.Is(err, store.ErrStale) {
			continue
		}
		if err != nil {
			return DeliveryView{}, err
		}
		document, err = o.store.Document(ctx, account, docs.DeliveryKind, id)
		if err != nil {
			return DeliveryView{}, err
		}
		return o.viewOf(ctx, document)
	}
}
