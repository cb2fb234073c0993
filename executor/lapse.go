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

// errNoLine says that a question would expire without a line in the audit log.
var errNoLine = errors.New("executor: an expiry without a line in the log")

// lapse is what is written in the transaction in which an interrupt expires: its request and an audit line. Or it puts the expiry off, by a new deadline:
// because of an outage, or because request or line could not be made, without which nothing expires. otherwise says that it expires for another reason
// than that nobody decided it in time.
func (e *Executor) lapse(i store.Interrupt, paper *store.Paper, now time.Time, outages []outage) (beside store.Beside, otherwise bool) {
	c := &filing{run: store.Run{Account: i.Account, ID: i.Run}, now: i.Deadline}
	if paper == nil { // it has no request
		if err := c.expired(i.ID, i.Deadline); err != nil {
			e.config.Log.Error("a question expires without a line in the log", "account", i.Account, "interrupt", i.ID, "err", err)
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
		e.config.Log.Error("a request cannot expire, and is put off", "account", i.Account, "request", i.ID, "for", pause, "err", err)
		change := e.again(*paper)
		change.Deadline = now.Add(pause)
		//mutate:unreadable-request-does-not-expire
		return store.Beside{Papers: []store.PaperChange{change}}, false
	}
	return c.Beside, otherwise
}

// lapses files the end of a request whose deadline has passed, or its new deadline after an outage.
func (e *Executor) lapses(c *filing, known *requested, now time.Time, outages []outage) (otherwise bool, err error) {
	if known.State != desk.Open { // the request is over, and yet the interrupt is pending
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

// expired adds the audit line of an expiry without a change of a request.
func (c *filing) expired(interrupt string, deadline time.Time) error {
	place := c.place()
	place.Interrupt = interrupt
	//mutate:expiry-without-request-audited
	return c.line(clockLine, place, audit.Expired{Deadline: audit.At(deadline)})
}
