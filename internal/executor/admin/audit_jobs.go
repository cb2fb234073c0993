package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/periodic"
	"github.com/fermata-go/fermata/internal/store"
)

// AuditConfig says whether the audit logs of all accounts are signed and checked in the background.
// Of several processes on one store, one at a time does it. The zero value does neither.
type AuditConfig struct {
	// Key signs checkpoints of the logs; without it nothing is signed. All processes need the same.
	// The key and the store together allow to rewrite a log: keep the key apart from the store.
	Key *audit.Key
	// SignEvery is how often logs are signed; the default is an hour.
	SignEvery time.Duration
	// CheckpointDir, if given, gets a copy of each checkpoint. A log that does not extend the last
	// checkpoint in it is not signed.
	CheckpointDir *audit.CheckpointDir
	// CheckEvery is how often all logs are verified, and compared with what runs know and what was
	// done; 0 is never.
	CheckEvery time.Duration
	// ReceiptAfter is how long after an approval an external agent that sends receipts may take to
	// send one; after that a check reports it. The default is 24 h.
	ReceiptAfter time.Duration
}

// The names of the jobs.
const (
	SignJob  = "audit-sign"
	CheckJob = "audit-check"
)

// AuditJobs are those that the settings ask for.
func (ad *Admin) AuditJobs() (all []periodic.Job) {
	a := ad.config.Audit
	if a.Key != nil {
		all = append(all, periodic.Job{Name: SignJob, Interval: a.SignEvery, VisitAccount: ad.signAccount})
	}
	if a.CheckEvery > 0 {
		all = append(all, periodic.Job{Name: CheckJob, Interval: a.CheckEvery, VisitAccount: ad.checkAccountLog})
	}
	return all
}

// signAccount signs what was added to the log of an account, if the log is still that which was
// signed before.
func (ad *Admin) signAccount(ctx context.Context, account string, pass *periodic.JobResult) error {
	a := ad.config.Audit
	var kept [][]byte
	if a.CheckpointDir != nil {
		last, err := a.CheckpointDir.Last(account)
		if err != nil {
			return ad.countFailure(ctx, "the folder of checkpoints cannot be read", account, pass, err)
		}
		if last != nil {
			kept = append(kept, last)
		}
	}
	signed, err := audit.CreateCheckpoint(ctx, audit.NewStoreLog(ad.store), account, a.Key, kept...)
	switch {
	case errors.Is(err, audit.ErrEmpty):
		return nil
	case errors.Is(err, audit.ErrFork), errors.Is(err, audit.ErrHead), errors.Is(err, audit.ErrCheckpoint):
		pass.Invalid++
		ad.config.Log.Error("audit log does not extend the signed checkpoint", "account", account, "err", err)
		return nil
	case err != nil:
		return ad.countFailure(ctx, "an audit log could not be signed", account, pass, err)
	}
	if a.CheckpointDir == nil {
		return nil
	}
	public, err := a.Key.Verifier(signed.Origin)
	if err == nil {
		err = a.CheckpointDir.Add(account, signed, public)
	}
	if err != nil {
		return ad.countFailure(ctx, "a checkpoint could not be written to the folder", account, pass, err)
	}
	return nil
}

// countFailure notes that an account could not be looked at. The others are.
func (ad *Admin) countFailure(ctx context.Context, what, account string, pass *periodic.JobResult, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	pass.Failed++
	ad.config.Log.Error(what, "account", account, "err", err)
	return nil
}

// checkAccountLog verifies the log of an account and compares it with the other books.
func (ad *Admin) checkAccountLog(ctx context.Context, account string, pass *periodic.JobResult) error {
	against, err := ad.verifyAgainst(ctx, account)
	if err != nil {
		return ad.countFailure(ctx, "the checkpoints of an audit log cannot be read", account, pass, err)
	}
	_, err = audit.Verify(ctx, audit.NewStoreLog(ad.store), account, against, io.Discard)
	if wrong, ok := errors.AsType[*audit.Problem](err); ok && wrong.Fault != audit.FaultUnsigned {
		pass.Invalid++
		ad.config.Log.Error("audit log is invalid", "account", account, "record", wrong.Seq, "fault", wrong.Fault)
		return nil // there is no use in comparing it
	} else if err != nil && !ok {
		return ad.countFailure(ctx, "an audit log could not be verified", account, pass, err)
	}
	found, err := ad.Reconcile(ctx, account)
	if err != nil {
		return ad.countFailure(ctx, "an audit log could not be compared with the runs", account, pass, err)
	}
	for _, f := range found {
		pass.Add(f)
	}
	for _, f := range ad.loggedFindings.newFindings(account, found) {
		if f.Severity != reconcile.SeverityInfo {
			ad.config.Log.Error("audit findings", "account", account, "finding", f.Code, "severity", f.Severity, "run", f.Run, "request", f.Interrupt, "record", f.Seq)
		}
	}
	return nil
}

// verifyAgainst is what the log of an account is verified against: the signatures of this
// installation, and the last checkpoint in the folder.
func (ad *Admin) verifyAgainst(ctx context.Context, account string) (against audit.VerifyOptions, err error) {
	a := ad.config.Audit
	if a.Key == nil {
		return against, nil
	}
	var keys []string
	if a.CheckpointDir != nil {
		kept, err := a.CheckpointDir.Last(account)
		if err != nil {
			return against, err
		}
		if kept != nil {
			against.KnownCheckpoints = [][]byte{kept}
		}
		// also those before a change of keys
		if keys, err = a.CheckpointDir.PublicKeys(account); err != nil {
			return against, err
		}
	}
	head, err := audit.NewStoreLog(ad.store).Head(ctx, account)
	if err != nil {
		return against, err
	}
	if head.Size > 0 { // an empty log has no name, so no key of its own
		public, err := a.Key.Verifier(head.Origin())
		if err != nil {
			return against, err
		}
		keys = append(keys, public)
	}
	if len(keys) > 0 {
		against.Trust, err = audit.NewTrust(keys...)
	}
	return against, err
}

// findingLog remembers, by account, which findings this process has logged, so that each is logged
// once. Only the goroutine of the job uses it.
type findingLog struct {
	logged map[string]map[reconcile.Finding]bool
}

// newFindings returns the findings that the last check did not have. Only the findings of the last
// check are remembered.
func (t *findingLog) newFindings(account string, found []reconcile.Finding) (news []reconcile.Finding) {
	now := make(map[reconcile.Finding]bool)
	for _, f := range found {
		key := f
		key.Text = "" // the same finding may be worded differently
		if now[key] = true; !t.logged[account][key] {
			news = append(news, f)
		}
	}
	if t.logged == nil {
		t.logged = make(map[string]map[reconcile.Finding]bool)
	}
	if t.logged[account] = now; len(now) == 0 {
		delete(t.logged, account)
	}
	return news
}

// AuditLines returns lines of an account's audit log, exactly as they are stored.
func (ad *Admin) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	return ad.store.AuditLines(ctx, account, after, limit)
}

// AuditCheckpoints returns the signed checkpoints of an account's log that cover more than so many
// records, the smallest first, and the public key of this installation; "" if it does not sign.
func (ad *Admin) AuditCheckpoints(ctx context.Context, account string, after int64, limit int) (list []audit.Checkpoint, public string, err error) {
	log := audit.NewStoreLog(ad.store)
	for note, err := range log.CheckpointsAfter(ctx, account, after) {
		if err != nil {
			return nil, "", err
		}
		c, err := audit.ParseUnverified(note)
		if err != nil {
			return nil, "", err
		}
		if list = append(list, c); len(list) == limit {
			break
		}
	}
	if ad.config.Audit.Key == nil {
		return list, "", nil
	}
	head, err := log.Head(ctx, account)
	if err != nil || head.Size == 0 {
		return list, "", err
	}
	public, err = ad.config.Audit.Key.Verifier(head.Origin())
	return list, public, err
}

// Overview is what operators see of the whole store, whichever process asks.
type Overview struct {
	// Now is the time of the store.
	Now time.Time
	// OpenRequests are the open questions of all accounts by kind, [MaxCountedRequests] at most.
	OpenRequests []store.PendingCount
	// OldestDueNotice is since when the oldest unsent notice is due; zero without one.
	OldestDueNotice time.Time
	// DueDeliveries are the deliveries that are due and not being sent, by channel;
	// [MaxCountedDeliveries] at most.
	DueDeliveries map[string]DueCount
	// LastSigning and LastCheck are the last passes over the audit logs.
	LastSigning, LastCheck periodic.JobResult
}

// DueCount counts deliveries that are due. Oldest is since when the first of them is due.
type DueCount struct {
	Count  int
	Oldest time.Time
}

// MaxCountedDeliveries is how many due deliveries are counted.
const MaxCountedDeliveries = 1000

// dueDeliveries counts the deliveries that are due.
func (ad *Admin) dueDeliveries(ctx context.Context) (map[string]DueCount, error) {
	due, err := ad.store.DueDocuments(ctx, docs.DeliveryKind, MaxCountedDeliveries)
	counts := make(map[string]DueCount)
	for _, document := range due { // oldest first
		var index docs.DeliveryIndex
		if err := json.Unmarshal(document.Index, &index); err != nil {
			return nil, err
		}
		count := counts[index.Channel]
		if count.Count++; count.Count == 1 {
			count.Oldest = document.DueAt
		}
		counts[index.Channel] = count
	}
	return counts, err
}

// MaxCountedRequests is how many open questions are counted.
const MaxCountedRequests = 100_000

// Overview looks at the whole store. It costs a count of the open questions: do not do it too
// often.
func (ad *Admin) Overview(ctx context.Context) (o Overview, err error) {
	if o.Now, err = ad.store.Now(ctx); err != nil {
		return o, err
	}
	if o.OpenRequests, err = ad.store.PendingByKind(ctx, MaxCountedRequests); err != nil {
		return o, err
	}
	due, err := ad.store.DueDocuments(ctx, docs.NoticeKind, 1)
	if err != nil {
		return o, err
	}
	if len(due) > 0 {
		o.OldestDueNotice = due[0].DueAt
	}
	if o.DueDeliveries, err = ad.dueDeliveries(ctx); err != nil {
		return o, err
	}
	if _, err = ad.docs.ReadIndex(ctx, "", docs.JobKind, SignJob, &o.LastSigning); err != nil {
		return o, err
	}
	_, err = ad.docs.ReadIndex(ctx, "", docs.JobKind, CheckJob, &o.LastCheck)
	return o, err
}
