package outbox

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	sendTimeout     = 30 * time.Second // how long sending one message may take
	batchPatience   = 2 * time.Second  // how long the next batch waits for slow channels
	claimLease      = time.Minute      // after which another process may take over a claim
	maxRetryBackoff = time.Hour        // the longest pause between two attempts
	// the number of attempts if the request is over: for about three days
	maxAttemptsAfterEnd = 84
)

// OutboxLoop expands due notices into deliveries and sends due deliveries, many at a time. A
// channel that hangs delays the next batch only for a short time. Each notice and each delivery is
// claimed by its revision, so one of several processes handles it. If that process fails, another
// one takes over when the claim has expired.
func (o *Sender) OutboxLoop() {
	// one is taken for each delivery that is in flight
	places := make(chan struct{}, requests.DuePerPass)
	for !o.background.IsStopping() {
		more := o.expandDue()
		room := cap(places) - len(places)
		if room == 0 {
			o.background.Sleep(min(o.config.Poll, batchPatience))
			continue
		}
		due, err := o.store.DueDocuments(o.background.Ctx, docs.DeliveryKind, room)
		o.background.LogRepeated("looking for due deliveries", err)
		var sent atomic.Int64
		var unclaimed background.ErrorCount
		var group sync.WaitGroup
		for _, document := range due {
			places <- struct{}{}
			group.Add(1)
			o.background.Tasks.Go(func() {
				defer func() { <-places; group.Done() }()
				if o.deliver(document, &unclaimed) {
					sent.Add(1)
				}
			})
		}
		waitGroup(&group, batchPatience)
		o.background.LogRepeated("delivery not sent, as nothing can be written", unclaimed.Err())
		if !more && (len(due) < room || sent.Load() == 0) {
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

// expandDue expands due notices. It reports whether there may be more of them.
func (o *Sender) expandDue() bool {
	due, err := o.store.DueDocuments(o.background.Ctx, docs.NoticeKind, requests.DuePerPass)
	o.background.LogRepeated("looking for due notices", err)
	var expanded int
	var failed background.ErrorCount
	for _, document := range due {
		if o.background.IsStopping() {
			return false
		}
		if err := o.expand(document); err != nil {
			failed.Add(fmt.Errorf("notice %s of %s: %w", document.ID, document.Account, err))
			continue
		}
		expanded++
	}
	o.background.LogRepeated("notice not expanded", failed.Err())
	return expanded > 0 && len(due) == requests.DuePerPass
}

// deliver claims and sends a delivery, and reports whether that succeeded. It did if another
// process has the delivery.
func (o *Sender) deliver(document store.Document, unclaimed *background.ErrorCount) bool {
	d, err := o.claim(document)
	if err != nil {
		unclaimed.Add(fmt.Errorf("delivery %s of %s: %w", document.ID, document.Account, err))
		return false
	}
	if d == nil {
		return true
	}
	result, err := o.send(d)
	if err != nil && o.background.Ctx.Err() == nil {
		// the error of a channel may contain anything, so it is not logged
		o.config.Log.Error("notice not delivered", "account", document.Account, "delivery", document.ID, "channel", d.index.Channel, "tries", d.index.Attempts, "again", result == willRetry)
	}
	return err == nil
}
