package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// beatPaper is the heartbeat of all processes that look at the clock. It belongs to no account. Each of them looks at it before it lets anything
// expire, and one of them moves it on: so whoever lets something expire knows of every time in which nobody was there.
const beatPaper store.PaperKind = "beat"

// beatID is the one that there is.
const beatID = "clock"

const (
	// beatsIn is how often the heart beats in the time after which its silence is an outage.
	beatsIn = 8
	// outagesKept is how many outages are remembered. A second one may come before the deadlines of the first are moved.
	outagesKept = 8
)

// beat is what is known of the heartbeat.
type beat struct {
	// At is when it was last heard, by the clock of the store.
	At time.Time `json:"at"`
	// Outages are the last times in which it was not, the oldest first.
	Outages []outage `json:"outages,omitempty"`
}

// outage is a time in which nobody looked at the clock.
type outage struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// pulse looks at the heartbeat, unless that was done a moment ago, and moves it on. What it leaves in last holds for now: nobody can have
// noticed an outage since, for somebody was there.
func (e *Executor) pulse(ctx context.Context, now time.Time, last *beat) error {
	for try := 0; !e.fresh(now, *last); try++ {
		heard, revision, err := e.heard(ctx)
		if err == nil && heard.At.After(now) { // this process was slow, and must not set it back; or a clock was wrong
			now, err = e.store.Now(ctx)
		}
		if err != nil {
			return err
		}
		if e.fresh(now, heard) {
			*last = heard
			return nil
		}
		next := e.beats(now, heard)
		err = e.moveOn(ctx, next, revision)
		if errors.Is(err, store.ErrStale) { // somebody was faster, and knows as much
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

// fresh reports whether the heart has beaten a moment ago. A beat in the future is that of a clock that was wrong.
func (e *Executor) fresh(now time.Time, b beat) bool {
	return now.Sub(b.At).Abs() < e.config.Outage/beatsIn
}

// beats is the next beat. If the last one is too long ago, there was an outage. One that ends in the future is that of a clock that was wrong: it is
// forgotten, as no request takes it, and would not end before that.
func (e *Executor) beats(now time.Time, last beat) beat {
	next := beat{At: now, Outages: slices.DeleteFunc(last.Outages, func(o outage) bool { return o.End.After(now) })}
	if silent := now.Sub(last.At); !last.At.IsZero() && silent > e.config.Outage {
		e.config.Log.Warn("nobody looked at the clock for a while: questions whose time was over then stay open for the grace of their routes", "since", last.At, "for", silent)
		next.Outages = append(next.Outages, outage{Start: last.At, End: now})
		next.Outages = next.Outages[max(0, len(next.Outages)-outagesKept):]
	}
	return next
}

func (e *Executor) heard(ctx context.Context) (b beat, revision int64, err error) {
	paper, err := e.store.Paper(ctx, "", beatPaper, beatID)
	if errors.Is(err, store.ErrNotFound) {
		return beat{}, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(paper.Facts, &b)
	}
	if err != nil {
		return beat{}, 0, fmt.Errorf("executor: the heartbeat: %w", err)
	}
	return b, paper.Revision, nil
}

func (e *Executor) moveOn(ctx context.Context, next beat, revision int64) error {
	facts, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return e.store.Amend(ctx, "", store.Beside{Papers: []store.PaperChange{{Kind: beatPaper, ID: beatID, Base: revision, Facts: facts}}})
}

// spare moves a deadline that fell into an outage, or so soon after one that people had no time. It returns nil if that leaves no time either.
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
