package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// ChannelHealth counts the deliveries of a channel.
type ChannelHealth struct {
	Channel string
	// Configured says that this process has the channel.
	Configured bool
	// Queued, Sent, Failed and Dead are the deliveries in these states. Seen ones count as sent.
	Queued, Sent, Failed, Dead int
	// LastSent is when the newest sent delivery changed, LastFailed when the newest failed or dead
	// one did; Code says why that one failed.
	LastSent, LastFailed time.Time
	Code                 string
	// Next is the earliest next attempt of a failed delivery.
	Next time.Time
}

// healthScan is how many deliveries are read at most.
const healthScan = 20000

// Health counts the deliveries of each channel that is configured or has deliveries, in the order
// of the names.
func (o *Sender) Health(ctx context.Context, account string) ([]ChannelHealth, error) {
	byKind := make(map[string]*ChannelHealth)
	for kind := range o.channels {
		if kind != channel.AnyKind {
			byKind[kind] = &ChannelHealth{Channel: kind, Configured: true}
		}
	}
	scanned := 0
	for document, err := range o.docs.Documents(ctx, account, docs.DeliveryKind, store.DocumentFilter{Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		if scanned++; scanned > healthScan {
			break
		}
		var index docs.DeliveryIndex
		if err := json.Unmarshal(document.Index, &index); err != nil {
			return nil, err
		}
		h := byKind[index.Channel]
		if h == nil {
			h = &ChannelHealth{Channel: index.Channel}
			byKind[index.Channel] = h
		}
		h.add(index, document)
	}
	all := make([]ChannelHealth, 0, len(byKind))
	for _, h := range byKind {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b ChannelHealth) int { return cmp.Compare(a.Channel, b.Channel) })
	return all, nil
}

func (h *ChannelHealth) add(index docs.DeliveryIndex, document store.Document) {
	switch index.State {
	case docs.DeliveryQueued:
		h.Queued++
	case docs.DeliverySent, docs.DeliverySeen:
		h.Sent++
		if document.Updated.After(h.LastSent) {
			h.LastSent = document.Updated
		}
	case docs.DeliveryFailed, docs.DeliveryDead:
		if index.State == docs.DeliveryDead {
			h.Dead++
		} else {
			h.Failed++
			if h.Next.IsZero() || document.DueAt.Before(h.Next) {
				h.Next = document.DueAt
			}
		}
		if document.Updated.After(h.LastFailed) {
			h.LastFailed, h.Code = document.Updated, index.Code
		}
	}
}
