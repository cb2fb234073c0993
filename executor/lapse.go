package executor

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// errNoLine says that a question would expire, and nobody could tell from the log.
var errNoLine = errors.New("executor: an expiry without a line in the log")

// lapse is what is written beside an interrupt that expires; or that would, and is put off: because of an outage, or because its request and the log
// could not be told. Nothing expires without them. otherwise says that it expires for another reason than that nobody decided it in time.
func (e *Executor) lapse(i store.Interrupt, paper *store.Paper, now time.Time, outages []outage) (beside store.Beside, otherwise bool) {
	c := &filing{run: store.Run{Account: i.Account, ID: i.Run}, now: i.Deadline}
	if paper == nil { // it was never put before people
		if err := c.expired(i.ID, i.Deadline); err != nil {
			e.config.Log.Error("a question expires without a line in the log", "interrupt", i.ID, "err", err)
		}
		return c.Beside, false
	}
	var facts analytics.RequestFacts
	if json.Unmarshal(paper.Facts, &facts) == nil {
		c.run.Provider, c.run.Graph, _ = strings.Cut(facts.Graph, ":")
	}
	pause := putOff
	known, err := e.readRequest(*paper)
	if err == nil {
		pause = putOffBriefly
		otherwise, err = e.lapses(c, known, now, outages)
	}
	if err == nil && !c.PutsOff(i.ID) && len(c.Audit) == 0 {
		err = errNoLine
	}
	if err != nil {
		e.config.Log.Error("a request cannot expire, and is put off", "request", i.ID, "for", pause, "err", err)
		return store.Beside{Papers: []store.PaperChange{{
			Kind: paper.Kind, ID: paper.ID, Base: paper.Revision, Body: paper.Body, Facts: paper.Facts, Next: paper.Next, Deadline: now.Add(pause),
		}}}, false
	}
	return c.Beside, otherwise
}

// lapses files what becomes of a request whose time is over.
func (e *Executor) lapses(c *filing, known *requested, now time.Time, outages []outage) (otherwise bool, err error) {
	if known.State != desk.Open { // nothing that people could still do; the run waits all the same
		return known.Final != nil && known.Final.Reason != stale, c.expired(known.ID, known.Deadline)
	}
	changes, err := e.spare(known.Request, outages, now)
	if err != nil {
		return false, err
	}
	if changes != nil {
		c.now = now
		return false, e.fileAll(c, changes, known.revision)
	}
	if known.Deadline.After(c.now) {
		c.now = known.Deadline
	}
	change, err := desk.Apply(known.Request, desk.Tick{}, e.env(c.now))
	if err != nil || !change.Changed() {
		return false, err
	}
	final := change.Request.Final
	return final != nil && final.Reason != stale, e.file(c, change, known.revision)
}

// expired is the line of an expiry that no request speaks of.
func (c *filing) expired(interrupt string, deadline time.Time) error {
	place := c.place()
	place.Interrupt = interrupt
	return c.line(clockLine, place, audit.Expired{Deadline: audit.At(deadline)})
}
