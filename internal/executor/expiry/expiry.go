package expiry

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/stats"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
)

// errNoAuditLine says that a request would expire without an audit line.
var errNoAuditLine = errors.New("executor: expiry without an audit record")

// expiryWrites returns what is written in the transaction in which an interrupt expires: its
// request and an audit line. Or it postpones the expiry with a new deadline: because of an outage,
// or because request or audit line could not be made. otherwise says that it expires for another
// reason than a missed deadline.
func (j *Job) expiryWrites(i store.Interrupt, paper *store.Document, now time.Time, outages []outage) (beside store.Writes, otherwise bool) {
	c := txn.New(store.Run{Account: i.Account, ID: i.Run}, docs.RunMeta{}, i.Deadline)
	if paper == nil { // it has no request
		if err := addExpiredLine(c, i.ID, i.Deadline); err != nil {
			j.config.Log.Error("request expires without an audit record", "account", i.Account, "interrupt", i.ID, "err", err)
		}
		return c.Writes, false
	}
	var facts analytics.RequestIndex
	if json.Unmarshal(paper.Index, &facts) == nil {
		c.Run.Provider, c.Run.Graph, _ = strings.Cut(facts.Graph, ":")
	}
	pause := docs.UnreadableDelay
	known, err := j.docs.DecodeRequest(*paper)
	if err == nil && known.Pending != nil { // it is decided: the route loop makes that effective
		return j.postpone(*paper, now.Add(docs.RetryDelay)), false
	}
	if err == nil {
		pause = docs.RetryDelay
		otherwise, err = j.addExpiry(c, known, now, outages)
	}
	if err == nil && !c.Postpones(i.ID) && len(c.Audit) == 0 {
		err = errNoAuditLine
	}
	if err != nil {
		j.config.Log.Error("request cannot expire; expiry postponed", "account", i.Account, "request", i.ID, "for", pause, "err", err)
		//mutate:unreadable-request-does-not-expire
		return j.postpone(*paper, now.Add(pause)), false
	}
	return c.Writes, otherwise
}

// postpone returns the writes that move the deadline of an interrupt and change nothing else.
func (j *Job) postpone(paper store.Document, until time.Time) store.Writes {
	change := j.docs.Unchanged(paper)
	change.InterruptDeadline = until
	return store.Writes{Documents: []store.DocumentChange{change}}
}

// addExpiry adds the end of a request whose deadline has passed, or its new deadline after an
// outage.
func (j *Job) addExpiry(c *txn.Tx, known *docs.Request, now time.Time, outages []outage) (otherwise bool, err error) {
	if known.State != desk.StateOpen { // the request is over, and yet the interrupt is pending
		return known.Decision != nil && known.Decision.Reason != stats.ReasonStale, addExpiredLine(c, known.ID, known.Deadline)
	}
	changes, err := j.extendForOutages(known.Request, outages, now)
	if err != nil {
		return false, err
	}
	if changes != nil {
		c.Now = now
		return false, j.requests.AddChanges(c, changes, known.Revision)
	}
	if known.Deadline.After(c.Now) {
		c.Now = known.Deadline
	}
	change, err := desk.Apply(known.Request, desk.Tick{}, j.requests.DeskEnv(c.Now))
	if err != nil || !change.Changed() {
		return false, err
	}
	final := change.Request.Decision
	return final != nil && final.Reason != stats.ReasonStale, j.requests.AddChange(c, change, known.Revision)
}

// addExpiredLine adds the audit line of an expiry without a change of a request.
func addExpiredLine(c *txn.Tx, interrupt string, deadline time.Time) error {
	place := c.AuditPlace()
	place.Interrupt = interrupt
	//mutate:expiry-without-request-audited
	return c.AddAudit(auditrec.ClockActor, place, audit.RequestExpired{Deadline: audit.TimestampOf(deadline)})
}
