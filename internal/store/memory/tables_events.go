package memory

import (
	"slices"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// eventLog holds the events of all runs.
type eventLog struct {
	entries      []loggedEvent
	lastPosition int64       // the position of the newest entry, even if it was deleted
	touched      []store.Key // runs that were changed in this transaction
}

// loggedEvent is an event and its position among those of all runs.
type loggedEvent struct {
	store.Event
	position int64
}

func (c *eventLog) touch(run *runRow) {
	c.touched = append(c.touched, store.Key{Account: run.Account, Run: run.ID})
}

// addEvent adds an event of a run.
func (b *tables) addEvent(now time.Time, run *runRow, kind store.EventKind, interrupt string) {
	run.events++
	b.events.lastPosition++
	b.events.entries = append(b.events.entries, loggedEvent{
		Event: store.Event{Account: run.Account, Run: run.ID, Seq: run.events, Kind: kind, Interrupt: interrupt, At: now}, position: b.events.lastPosition,
	})
	b.events.touch(run)
}

func (b *tables) eventsOf(account, run string, after int64) []store.Event {
	var list []store.Event
	for _, line := range b.events.entries {
		if line.Account == account && line.Run == run && line.Seq > after {
			list = append(list, line.Event)
		}
	}
	return list
}

func (b *tables) feed(account, after string, limit int) ([]store.Event, string, error) {
	place := int64(0)
	if after != "" {
		var err error
		place, err = strconv.ParseInt(after, 10, 64)
		if err != nil || strconv.FormatInt(place, 10) != after || place < 1 || place > b.events.lastPosition {
			return nil, "", store.ErrInvalid
		}
	}
	from, _ := slices.BinarySearchFunc(b.events.entries, place+1, func(line loggedEvent, place int64) int { return int(line.position - place) })
	var list []store.Event
	for _, line := range b.events.entries[from:] {
		if len(list) == limit {
			break
		}
		if line.Account == account { //mutate:memory-events-account
			list = append(list, line.Event)
			after = strconv.FormatInt(line.position, 10)
		}
	}
	return list, after, nil
}
