package expiry

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/executor/stats"
	"github.com/fermata-go/fermata/internal/executor/storeclock"
	"github.com/fermata-go/fermata/internal/store"
)

// expirePerTx is how many requests expire in one transaction, if the store has one for all of them.
// Concurrent decisions wait for it.
const expirePerTx = 10

// ExpireLoop expires requests until the executor is stopped. The store's clock has to agree with
// the time that has passed in this process: a clock that jumps must not expire all requests.
func (j *Job) ExpireLoop() {
	var guard storeclock.Guard
	var last heartbeat
	for !j.background.IsStopping() {
		expired, spared, err := j.expireDue(&guard, &last)
		j.background.LogRepeated("expiring questions", j.background.NoteWriteError(err))
		if expired > 0 {
			j.wakeWorker()
		}
		if err != nil || expired+spared < expirePerTx {
			j.background.Sleep(j.config.Poll)
		}
	}
}

// expireDue expires requests, and extends those whose deadline fell into an outage.
func (j *Job) expireDue(guard *storeclock.Guard, last *heartbeat) (expired, spared int, err error) {
	now, err := j.store.Now(j.background.Ctx)
	if err != nil {
		return 0, 0, err
	}
	j.contact.NoteReply()
	if !guard.IsTrusted(now) { //mutate:clock-jump-guard
		j.background.LogRepeated("nothing expires for now", errClockJumped, "ahead", guard.Jump.Round(time.Second))
		//mutate:clock-behind-guard
		// what is asked by it would be over when it is right: the heartbeat makes that leap an
		// outage
		if guard.IsBehind() {
			err = j.refreshHeartbeat(j.background.Ctx, now, last)
		}
		return 0, 0, err
	}
	if err := j.refreshHeartbeat(j.background.Ctx, now, last); err != nil {
		return 0, 0, err
	}
	if last.At.After(now) {
		// another process wrote it after we asked for the time; an outage may have ended then
		now = last.At
	}
	// If this process is suspended in the middle, its knowledge of outages is outdated, and it must
	// not go on.
	ctx, cancel := context.WithTimeout(j.background.Ctx, j.config.OutageAfter/2)
	defer cancel()
	otherwise := make(map[stats.RequestKey]bool)
	// Nothing that is due after now: the store's clock may have jumped since it was checked.
	over, err := j.store.Expire(ctx, now, expirePerTx, func(i store.Interrupt, request *store.Document) store.Writes {
		beside, other := j.expiryWrites(i, request, now, last.Outages)
		if beside.Postpones(i.ID) {
			spared++
		}
		otherwise[stats.RequestKey{Account: i.Account, ID: i.ID}] = other
		return beside
	})
	j.stats.NoteExpired(over, otherwise)
	return len(over), spared, err
}

var errClockJumped = errors.New("the clock of the store has jumped")
