// Package txn has the unit of work: the documents and audit lines of one transaction.
package txn

import (
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// Tx is a unit of work: the documents and audit lines that are written in the same transaction as a
// change of a run, and what is needed to make them. Its constructors set all fields.
type Tx struct {
	store.Writes
	Run      store.Run
	Meta     docs.RunMeta
	Now      time.Time // zero until setTime was called
	ResumeID string    // the resume id of the decision, if it records one
}

// New begins a unit of work for a run. now may be zero if no document in it needs the time.
func New(run store.Run, meta docs.RunMeta, now time.Time) *Tx {
	return &Tx{Run: run, Meta: meta, Now: now}
}

// NewDecision begins the unit of work of a decision.
func NewDecision(run store.Run, meta docs.RunMeta, now time.Time, resumeID string) *Tx {
	return &Tx{Run: run, Meta: meta, Now: now, ResumeID: resumeID}
}

// Digest returns the digest of a text for the audit log. It is made with the run's salt, without
// which guesses cannot be tested; without a salt it is empty.
func (c *Tx) Digest(text string) audit.Digest { return c.digest(text, AuditSalt(c.Meta)) }

// ScreenDigest returns the digest of the hash of a rendering of a request for the audit log.
func (c *Tx) ScreenDigest(request, hash string) audit.Digest {
	return c.digest(hash, ScreenSalt(c.Meta, request))
}

// ScreenSalt returns the salt of the digests of what people saw of a request. It does not open
// those of other requests of the run.
func ScreenSalt(meta docs.RunMeta, request string) audit.Salt {
	return AuditSalt(meta).Derive(audit.ScreenPurpose + "/" + request)
}

// AuditSalt returns the salt of a run's digests in the audit log; zero if it has none.
func AuditSalt(meta docs.RunMeta) (salt audit.Salt) {
	if len(meta.Salt) == len(salt) {
		copy(salt[:], meta.Salt)
	}
	return salt
}

func (c *Tx) digest(text string, salt audit.Salt) audit.Digest {
	if text == "" || salt == (audit.Salt{}) {
		return audit.Digest{}
	}
	return audit.Payload{ID: c.Run.ID, Salt: salt, Data: []byte(text)}.Digest()
}

// AuditPlace returns the place of the run in the audit log.
func (c *Tx) AuditPlace() audit.Location {
	return audit.Location{Run: c.Run.ID, StateKey: c.Run.StateKey, Graph: c.Run.Provider + ":" + c.Run.Graph}
}

// RequestPlace returns the place of an interrupt of the run, and of its request, which has the same
// id.
func (c *Tx) RequestPlace(question string) audit.Location {
	place := c.AuditPlace()
	place.Interrupt, place.Request = question, question
	return place
}

// AddAudit adds an audit line.
func (c *Tx) AddAudit(actor audit.Actor, place audit.Location, body audit.Body) error {
	line, err := audit.NewLine(c.Run.Account, actor, place, body)
	if err == nil {
		c.Audit = append(c.Audit, line)
	}
	return err
}
