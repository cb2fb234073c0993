package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	// probePause is the longest pause between two attempts of the delivery that probes a channel.
	probePause = 30 * time.Second
	// maxLimitedPause is the longest pause after an attempt for which the channel gave a time.
	maxLimitedPause = time.Minute
	// maxFailing bounds the deliveries of a channel that are remembered.
	maxFailing = 20_000
	// minAfterEnd is how long a message is tried at least after its request has ended.
	minAfterEnd = 72 * time.Hour
)

// deliveryRef names a delivery.
type deliveryRef struct{ account, id string }

// outages remembers which deliveries wait for a channel that fails. One of them is tried often, as
// a probe; when a message is sent, all others are due at once. Without that, messages would be
// missing after an outage for as long as it lasted.
type outages struct {
	mu      sync.Mutex
	failing map[string]map[deliveryRef]bool // by channel
	probes  map[string]deliveryRef
}

// pause returns the pause after a failed attempt, and remembers the delivery.
func (o *outages) pause(kind string, ref deliveryRef, attempts int, failure error) time.Duration {
	pause := backoff(attempts)
	if after := channelerror.RetryAfter(failure); after > 0 { // the next attempt has a time
		return max(after, min(pause, maxLimitedPause))
	}
	if !channelerror.IsOutage(failure) {
		return pause
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing == nil {
		o.failing, o.probes = make(map[string]map[deliveryRef]bool), make(map[string]deliveryRef)
	}
	if o.failing[kind] == nil {
		o.failing[kind] = make(map[deliveryRef]bool)
	}
	if len(o.failing[kind]) < maxFailing {
		o.failing[kind][ref] = true
	}
	if _, known := o.probes[kind]; !known {
		o.probes[kind] = ref
	}
	if o.probes[kind] == ref {
		return min(pause, probePause)
	}
	return pause
}

// settled forgets a delivery. If it was sent, it returns the others that waited for its channel.
func (o *outages) settled(kind string, ref deliveryRef, sent bool) (waiting []deliveryRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failing[kind], ref)
	if o.probes[kind] == ref {
		delete(o.probes, kind)
		for other := range o.failing[kind] { // until a message is sent, another one is the probe
			o.probes[kind] = other
			break
		}
	}
	if !sent {
		return nil
	}
	for other := range o.failing[kind] {
		waiting = append(waiting, other)
	}
	delete(o.failing, kind)
	delete(o.probes, kind)
	return waiting
}

// endOutage forgets a delivery that is settled. If it was sent, the others of its channel are due.
func (o *Sender) endOutage(d *claimed, sent bool) {
	waiting := o.outages.settled(d.index.Channel, deliveryRef{d.document.Account, d.document.ID}, sent)
	if len(waiting) == 0 {
		return
	}
	o.background.Tasks.Go(func() {
		o.background.LogRepeated("deliveries not due after an outage", o.wake(o.background.Ctx, waiting))
	})
}

// wake makes deliveries due that failed. Another process may have sent them.
func (o *Sender) wake(ctx context.Context, waiting []deliveryRef) error {
	var failed error
	for _, ref := range waiting {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed = errors.Join(failed, o.wakeOne(ctx, ref))
	}
	return failed
}

func (o *Sender) wakeOne(ctx context.Context, ref deliveryRef) error {
	document, err := o.store.Document(ctx, ref.account, docs.DeliveryKind, ref.id)
	if docs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var index docs.DeliveryIndex
	if err := json.Unmarshal(document.Index, &index); err != nil {
		return err
	}
	if index.Sending || index.State != docs.DeliveryFailed || document.DueAt.IsZero() {
		return nil
	}
	now, err := o.store.Now(ctx)
	if err != nil {
		return err
	}
	if err = o.docs.UpdateIndex(ctx, &document, index, now); errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// endedFor returns how long ago a request ended; long ago if that is unknown.
func (d *claimed) endedFor(request *docs.Request) time.Duration {
	if request == nil || request.Decision == nil {
		return minAfterEnd
	}
	return d.storeNow().Sub(request.Decision.At)
}
