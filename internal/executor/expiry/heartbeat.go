package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/store"
)

// heartbeatID is the id of the only one.
const heartbeatID = "clock"

const (
	// heartbeatsPerOutage is how many heartbeats there are in Config.OutageAfter.
	heartbeatsPerOutage = 8
	// maxOutages is how many outages are remembered: another one may begin before all deadlines of
	// the last have been moved.
	maxOutages = 8
)

// heartbeat is the index of the heartbeat document.
type heartbeat struct {
	// At is the last heartbeat, by the clock of the store.
	At time.Time `json:"at"`
	// Outages are the last gaps that were too long, the oldest first.
	Outages []outage `json:"outages,omitempty"`
}

// outage is a time in which no process expired requests.
type outage struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// refreshHeartbeat makes last a fresh heartbeat: it reads the heartbeat, unless last is fresh
// already, and writes the next one if it is due. While a heartbeat is fresh there cannot have been
// an outage that it does not contain.
func (j *Job) refreshHeartbeat(ctx context.Context, now time.Time, last *heartbeat) error {
	for try := 0; !j.isFresh(now, *last); try++ {
		var heard heartbeat
		paper, err := j.docs.ReadIndex(ctx, "", docs.HeartbeatKind, heartbeatID, &heard)
		if err != nil {
			return fmt.Errorf("executor: the heartbeat: %w", err)
		}
		//mutate:heartbeat-not-set-back
		// this process was slow, and must not move it back; or a clock was wrong
		if heard.At.After(now) {
			if now, err = j.store.Now(ctx); err != nil {
				return err
			}
		}
		if j.isFresh(now, heard) {
			*last = heard
			return nil
		}
		next := j.nextHeartbeat(now, heard)
		err = j.docs.UpdateIndex(ctx, &paper, next, time.Time{})
		if errors.Is(err, store.ErrStale) { // another process wrote one
			err = retry.BackOff(ctx, try)
		} else if err == nil {
			*last = next
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isFresh reports whether the next heartbeat is not due yet. One that is far in the future was
// written by a wrong clock and is not fresh.
func (j *Job) isFresh(now time.Time, b heartbeat) bool {
	return now.Sub(b.At).Abs() < j.config.OutageAfter/heartbeatsPerOutage
}

// nextHeartbeat returns the heartbeat after last. If last is too long ago, there was an outage. An
// outage that ends in the future was written by a wrong clock and is cut off: package desk accepts
// none that has not ended.
func (j *Job) nextHeartbeat(now time.Time, last heartbeat) heartbeat {
	next := heartbeat{At: now}
	for _, o := range last.Outages {
		if o.Start.Before(now) {
			//mutate:outage-end-limited
			next.Outages = append(next.Outages, outage{Start: o.Start, End: earliest(o.End, now)})
		}
	}
	if silent := now.Sub(last.At); !last.At.IsZero() && silent > j.config.OutageAfter {
		j.config.Log.Warn("deadlines were not checked (outage or clock jump); deadlines that passed are extended by the grace period", "since", last.At, "for", silent)
		next.Outages = append(next.Outages, outage{Start: last.At, End: now}) //mutate:outage-recorded
		next.Outages = next.Outages[max(0, len(next.Outages)-maxOutages):]
	}
	return next
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// extendForOutages moves the deadline of a request that fell into an outage, or so soon after one
// that people had no time to decide. It returns nil if the deadline has passed all the same.
func (j *Job) extendForOutages(request desk.Request, outages []outage, now time.Time) ([]desk.Change, error) {
	var changes []desk.Change
	for _, o := range outages {
		change, err := desk.Apply(request, desk.RecordOutage{Start: o.Start, End: o.End}, j.requests.DeskEnv(now))
		if err != nil {
			return nil, err
		}
		if change.Changed() {
			request, changes = change.Request, append(changes, change)
		}
	}
	if !request.Deadline.After(now) {
		return nil, nil
	}
	return changes, nil
}
