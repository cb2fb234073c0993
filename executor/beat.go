package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// beatPaper is the heartbeat of all processes that let questions expire. It belongs to no account. Before anything expires the heartbeat is read, and
// written if it is old. So a gap in it is a time in which no process was running, or which the clock of the store left out; and every process that lets a
// question expire knows of the gap.
const beatPaper store.PaperKind = "beat"

// beatID is the id of the only one.
const beatID = "clock"

const (
	// beatsIn is how many heartbeats there are in Config.Outage.
	beatsIn = 8
	// outagesKept is how many outages are remembered: another one may begin before all deadlines of the last have been moved.
	outagesKept = 8
)

// beat is what the paper says.
type beat struct {
	// At is the last heartbeat, by the clock of the store.
	At time.Time `json:"at"`
	// Outages are the last gaps that were too long, the oldest first.
	Outages []outage `json:"outages,omitempty"`
}

// outage is a time in which no process let questions expire.
type outage struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// pulse makes last a heartbeat that is fresh: it reads the heartbeat, unless last is fresh already, and writes the next one if that is due. While a
// heartbeat is fresh there cannot have been an outage that it does not know of.
func (e *Executor) pulse(ctx context.Context, now time.Time, last *beat) error {
	for try := 0; !e.fresh(now, *last); try++ {
		var heard beat
		paper, err := e.readFacts(ctx, "", beatPaper, beatID, &heard)
		if err != nil {
			return fmt.Errorf("executor: the heartbeat: %w", err)
		}
		//mutate:heartbeat-not-set-back
		if heard.At.After(now) { // this process was slow, and must not move it back; or a clock was wrong
			if now, err = e.store.Now(ctx); err != nil {
				return err
			}
		}
		if e.fresh(now, heard) {
			*last = heard
			return nil
		}
		next := e.beats(now, heard)
		err = e.note(ctx, &paper, next, time.Time{})
		if errors.Is(err, store.ErrStale) { // another process wrote one
			err = backOff(ctx, try)
		} else if err == nil {
			*last = next
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fresh reports whether the next heartbeat is not due yet. One that is far in the future was written by a clock that was wrong, and is not fresh.
func (e *Executor) fresh(now time.Time, b beat) bool {
	return now.Sub(b.At).Abs() < e.config.Outage/beatsIn
}

// beats is the heartbeat after last. If last is too long ago, there was an outage. One that ends in the future was written by a clock that was wrong, now or
// then, and is cut off: package desk takes none that is not over.
func (e *Executor) beats(now time.Time, last beat) beat {
	next := beat{At: now}
	for _, o := range last.Outages {
		if o.Start.Before(now) {
			//mutate:outage-end-limited
			next.Outages = append(next.Outages, outage{Start: o.Start, End: earlier(o.End, now)})
		}
	}
	if silent := now.Sub(last.At); !last.At.IsZero() && silent > e.config.Outage {
		e.config.Log.Warn("nobody looked at the clock for a while, or it was set ahead: questions whose time was over then stay open for the grace of their routes", "since", last.At, "for", silent)
		next.Outages = append(next.Outages, outage{Start: last.At, End: now}) //mutate:outage-recorded
		next.Outages = next.Outages[max(0, len(next.Outages)-outagesKept):]
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// spare moves the deadline of a request that fell into an outage, or so soon after one that people had no time to decide. It returns nil if the
// deadline has passed all the same.
func (e *Executor) spare(request desk.Request, outages []outage, now time.Time) ([]desk.Change, error) {
	var changes []desk.Change
	for _, o := range outages {
		change, err := desk.Apply(request, desk.Outage{Start: o.Start, End: o.End}, e.env(now))
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
