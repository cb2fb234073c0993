package memory

import (
	"slices"
	"strconv"
	"time"

	"github.com/fermata-go/fermata/store"
)

// chronicle is what happened to all runs.
type chronicle struct {
	lines   []happened
	last    int64       // the place of the newest line, whether or not it was forgotten
	touched []store.Key // runs to which something happened in this transaction
}

// happened is an event and its place among those of all runs.
type happened struct {
	store.Event
	place int64
}

func (c *chronicle) touch(run *bookedRun) {
	c.touched = append(c.touched, store.Key{Account: run.Account, Run: run.ID})
}

// note writes down what happened to a run.
func (b *book) note(now time.Time, run *bookedRun, kind store.EventKind, interrupt string) {
	run.events++
	b.log.last++
	b.log.lines = append(b.log.lines, happened{
		Event: store.Event{Account: run.Account, Run: run.ID, Number: run.events, Kind: kind, Interrupt: interrupt, At: now}, place: b.log.last,
	})
	b.log.touch(run)
}

func (b *book) eventsOf(account, run string, after int64) []store.Event {
	var list []store.Event
	for _, line := range b.log.lines {
		if line.Account == account && line.Run == run && line.Number > after {
			list = append(list, line.Event)
		}
	}
	return list
}

func (b *book) feed(account, after string, limit int) ([]store.Event, string, error) {
	place := int64(0)
	if after != "" {
		var err error
		place, err = strconv.ParseInt(after, 10, 64)
		if err != nil || strconv.FormatInt(place, 10) != after || place < 1 || place > b.log.last {
			return nil, "", store.ErrKey
		}
	}
	from, _ := slices.BinarySearchFunc(b.log.lines, place+1, func(line happened, place int64) int { return int(line.place - place) })
	var list []store.Event
	for _, line := range b.log.lines[from:] {
		if len(list) == limit {
			break
		}
		if line.Account == account { //mutate:memory-events-account
			list = append(list, line.Event)
			after = strconv.FormatInt(line.place, 10)
		}
	}
	return list, after, nil
}
