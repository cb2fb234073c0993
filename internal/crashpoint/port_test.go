package crashpoint

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

// errDead is the error for calls of a dead process: they do not take effect.
var errDead = errors.New("crashpoint: the process is dead")

// passage is the only way for one process to call the store or a target.
type passage interface {
	// pass makes a call. It returns errDead if the process dies before it gets the result.
	do(what string, call func()) error
}

// port is a store for one process: every call goes through its passage. It lists all methods, so
// that a method that is added to the store interface does not compile here until it is considered.
type port struct {
	inner store.Store
	way   passage
	// lease, if not 0, is the real duration of leases, whatever the process requests.
	lease time.Duration
	// claimed, if set, is called when the process has claimed a run.
	claimed func()
}

var _ store.Store = (*port)(nil)

// through makes a call with a result. A call in progress is not cancelled when its caller dies.
func through[T any](ctx context.Context, p *port, what string, call func(ctx context.Context) (T, error)) (T, error) {
	var none, result T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	var err error
	if dead := p.way.do(what, func() { result, err = call(context.WithoutCancel(ctx)) }); dead != nil {
		return none, dead
	}
	return result, err
}

// callErr is for calls without a result.
func callErr(ctx context.Context, p *port, what string, call func(ctx context.Context) error) error {
	_, err := through(ctx, p, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (p *port) leased(d time.Duration) time.Duration {
	if p.lease != 0 {
		return p.lease
	}
	return d
}

func (p *port) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	return through(ctx, p, "Load", func(ctx context.Context) (store.Checkpoint, error) { return p.inner.Load(ctx, key) })
}

func (p *port) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return through(ctx, p, "Save", func(ctx context.Context) (int64, error) { return p.inner.Save(ctx, key, base, delta) })
}

func (p *port) Delete(ctx context.Context, key store.Key) error {
	return callErr(ctx, p, "Delete", func(ctx context.Context) error { return p.inner.Delete(ctx, key) })
}

func (p *port) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	run.Lease = p.leased(run.Lease)
	return through(ctx, p, "Create", func(ctx context.Context) (store.Lease, error) { return p.inner.Create(ctx, run) })
}

func (p *port) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	return through(ctx, p, "Get", func(ctx context.Context) (store.Run, error) { return p.inner.Get(ctx, account, stateKey) })
}

func (p *port) List(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return through(ctx, p, "List", func(ctx context.Context) ([]store.Run, error) { return p.inner.List(ctx, account, filter) })
}

func (p *port) Claim(ctx context.Context, claim store.Claim) (*store.ClaimedRun, error) {
	claim.Lease = p.leased(claim.Lease)
	work, err := through(ctx, p, "Claim", func(ctx context.Context) (*store.ClaimedRun, error) { return p.inner.Claim(ctx, claim) })
	if work != nil && p.claimed != nil {
		p.claimed()
	}
	return work, err
}

func (p *port) Renew(ctx context.Context, lease store.Lease, duration time.Duration) error {
	return callErr(ctx, p, "Renew", func(ctx context.Context) error { return p.inner.Renew(ctx, lease, p.leased(duration)) })
}

func (p *port) SetProviderRef(ctx context.Context, lease store.Lease, ref []byte) error {
	return callErr(ctx, p, "SetProviderRef", func(ctx context.Context) error { return p.inner.SetProviderRef(ctx, lease, ref) })
}

func (p *port) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	return through(ctx, p, "EndExecution", func(ctx context.Context) (store.Status, error) { return p.inner.EndExecution(ctx, lease, rest) })
}

func (p *port) Release(ctx context.Context, lease store.Lease, release store.Release) error {
	return callErr(ctx, p, "Release", func(ctx context.Context) error { return p.inner.Release(ctx, lease, release) })
}

func (p *port) Retry(ctx context.Context, account, run string, beside store.Writes) (store.Run, error) {
	return through(ctx, p, "Retry", func(ctx context.Context) (store.Run, error) { return p.inner.Retry(ctx, account, run, beside) })
}

func (p *port) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	if decision.Claim != nil {
		claim := *decision.Claim
		claim.Lease = p.leased(claim.Lease)
		decision.Claim = &claim
	}
	receipt, err := through(ctx, p, "Decide", func(ctx context.Context) (store.DecisionReceipt, error) { return p.inner.Decide(ctx, decision) })
	if receipt.Claimed != nil && p.claimed != nil {
		p.claimed()
	}
	return receipt, err
}

func (p *port) Receipt(ctx context.Context, account, actor, resumeID string) (store.DecisionReceipt, error) {
	return through(ctx, p, "Receipt", func(ctx context.Context) (store.DecisionReceipt, error) {
		return p.inner.Receipt(ctx, account, actor, resumeID)
	})
}

func (p *port) Interrupts(ctx context.Context, account, run string) ([]store.Interrupt, error) {
	return through(ctx, p, "Interrupts", func(ctx context.Context) ([]store.Interrupt, error) { return p.inner.Interrupts(ctx, account, run) })
}

func (p *port) BeginEffect(ctx context.Context, lease store.Lease, effect store.NewEffect) (store.Effect, bool, error) {
	type begun struct {
		line store.Effect
		now  bool
	}
	b, err := through(ctx, p, "BeginEffect", func(ctx context.Context) (b begun, err error) {
		b.line, b.now, err = p.inner.BeginEffect(ctx, lease, effect)
		return b, err
	})
	return b.line, b.now, err
}

func (p *port) EndEffect(ctx context.Context, end store.EffectEnd) error {
	return callErr(ctx, p, "EndEffect", func(ctx context.Context) error { return p.inner.EndEffect(ctx, end) })
}

func (p *port) Expire(ctx context.Context, until time.Time, limit int, beside func(store.Interrupt, *store.Document) store.Writes) ([]store.Interrupt, error) {
	return through(ctx, p, "Expire", func(ctx context.Context) ([]store.Interrupt, error) { return p.inner.Expire(ctx, until, limit, beside) })
}

func (p *port) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, beside store.Writes) (store.Run, error) {
	return through(ctx, p, "Cancel", func(ctx context.Context) (store.Run, error) {
		return p.inner.Cancel(ctx, account, run, as, waits, beside)
	})
}

func (p *port) Fenced(lease store.Lease) store.Checkpoints {
	return &fenced{p, p.inner.Fenced(lease)}
}

// fenced are the checkpoints of a run for its lease holder.
type fenced struct {
	port        *port
	checkpoints store.Checkpoints
}

func (f *fenced) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	return through(ctx, f.port, "Load", func(ctx context.Context) (store.Checkpoint, error) { return f.checkpoints.Load(ctx, key) })
}

func (f *fenced) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return through(ctx, f.port, "Save", func(ctx context.Context) (int64, error) { return f.checkpoints.Save(ctx, key, base, delta) })
}

func (f *fenced) Delete(ctx context.Context, key store.Key) error {
	return callErr(ctx, f.port, "Delete", func(ctx context.Context) error { return f.checkpoints.Delete(ctx, key) })
}

func (p *port) Now(ctx context.Context) (time.Time, error) {
	return through(ctx, p, "Now", p.inner.Now)
}

func (p *port) Events(ctx context.Context, account, run string, after int64, limit int) ([]store.Event, error) {
	return through(ctx, p, "Events", func(ctx context.Context) ([]store.Event, error) {
		return p.inner.Events(ctx, account, run, after, limit)
	})
}

func (p *port) Feed(ctx context.Context, account, after string, limit int) ([]store.Event, string, error) {
	var next string
	events, err := through(ctx, p, "Feed", func(ctx context.Context) ([]store.Event, error) {
		events, cursor, err := p.inner.Feed(ctx, account, after, limit)
		next = cursor
		return events, err
	})
	if err != nil { // it may still be in transit; next is a copy
		return nil, "", err
	}
	return events, next, nil
}

// Watch passes notifications on. They change nothing, so a dead process may get them.
func (p *port) Watch(ctx context.Context) <-chan store.Key { return p.inner.Watch(ctx) }

func (p *port) InboxItems(ctx context.Context, account string, filter store.InboxFilter) ([]store.InboxItem, error) {
	return through(ctx, p, "InboxItems", func(ctx context.Context) ([]store.InboxItem, error) { return p.inner.InboxItems(ctx, account, filter) })
}

func (p *port) InboxItem(ctx context.Context, account, id string) (store.InboxItem, error) {
	return through(ctx, p, "InboxItem", func(ctx context.Context) (store.InboxItem, error) { return p.inner.InboxItem(ctx, account, id) })
}

func (p *port) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	return through(ctx, p, "RunSnapshot", func(ctx context.Context) (store.RunSnapshot, error) {
		return p.inner.RunSnapshot(ctx, account, stateKey, own)
	})
}

func (p *port) CountPending(ctx context.Context, account string, without []string, limit int) (int, error) {
	return through(ctx, p, "CountPending", func(ctx context.Context) (int, error) { return p.inner.CountPending(ctx, account, without, limit) })
}

func (p *port) PendingByKind(ctx context.Context, limit int) ([]store.PendingCount, error) {
	return through(ctx, p, "PendingByKind", func(ctx context.Context) ([]store.PendingCount, error) { return p.inner.PendingByKind(ctx, limit) })
}

func (p *port) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	return through(ctx, p, "Document", func(ctx context.Context) (store.Document, error) { return p.inner.Document(ctx, account, kind, id) })
}

func (p *port) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error) {
	return through(ctx, p, "Documents", func(ctx context.Context) ([]store.Document, error) {
		return p.inner.Documents(ctx, account, kind, filter)
	})
}

func (p *port) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error) {
	return through(ctx, p, "DueDocuments", func(ctx context.Context) ([]store.Document, error) { return p.inner.DueDocuments(ctx, kind, limit) })
}

func (p *port) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	return callErr(ctx, p, "CommitWrites", func(ctx context.Context) error { return p.inner.CommitWrites(ctx, account, beside) })
}

func (p *port) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	return through(ctx, p, "AuditHead", func(ctx context.Context) (chain.Head, error) { return p.inner.AuditHead(ctx, account) })
}

func (p *port) AuditAccounts(ctx context.Context, after string, limit int) ([]string, string, error) {
	var next string
	accounts, err := through(ctx, p, "AuditAccounts", func(ctx context.Context) ([]string, error) {
		accounts, cursor, err := p.inner.AuditAccounts(ctx, after, limit)
		next = cursor
		return accounts, err
	})
	if err != nil { // it may still be in transit; next is a copy
		return nil, "", err
	}
	return accounts, next, nil
}

func (p *port) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	return through(ctx, p, "AuditLines", func(ctx context.Context) ([]store.AuditLine, error) {
		return p.inner.AuditLines(ctx, account, after, limit)
	})
}

func (p *port) FinishedRuns(ctx context.Context, from, before time.Time, limit int) ([]store.Run, error) {
	return through(ctx, p, "FinishedRuns", func(ctx context.Context) ([]store.Run, error) { return p.inner.FinishedRuns(ctx, from, before, limit) })
}

func (p *port) DeleteRun(ctx context.Context, account, run string, beside store.Writes) error {
	return callErr(ctx, p, "DeleteRun", func(ctx context.Context) error { return p.inner.DeleteRun(ctx, account, run, beside) })
}

func (p *port) History(ctx context.Context, account, run string) (store.History, error) {
	return through(ctx, p, "History", func(ctx context.Context) (store.History, error) { return p.inner.History(ctx, account, run) })
}

func (p *port) Size(ctx context.Context) (store.Size, error) {
	return through(ctx, p, "Size", p.inner.Size)
}

func (p *port) Vacuum(ctx context.Context) error { return callErr(ctx, p, "Vacuum", p.inner.Vacuum) }

func (p *port) Reencrypt(ctx context.Context, after string, limit int, reseal func(store.SealedValue) ([]byte, error)) (string, error) {
	return through(ctx, p, "Reencrypt", func(ctx context.Context) (string, error) { return p.inner.Reencrypt(ctx, after, limit, reseal) })
}

func (p *port) PutIfAbsent(ctx context.Context, name string, value []byte) ([]byte, error) {
	return through(ctx, p, "PutIfAbsent", func(ctx context.Context) ([]byte, error) { return p.inner.PutIfAbsent(ctx, name, value) })
}

func (p *port) AddCredential(ctx context.Context, credential store.Credential, beside store.Writes) error {
	return callErr(ctx, p, "AddCredential", func(ctx context.Context) error { return p.inner.AddCredential(ctx, credential, beside) })
}

func (p *port) Credential(ctx context.Context, id string) (store.Credential, error) {
	return through(ctx, p, "Credential", func(ctx context.Context) (store.Credential, error) { return p.inner.Credential(ctx, id) })
}

func (p *port) Credentials(ctx context.Context, account string) ([]store.Credential, error) {
	return through(ctx, p, "Credentials", func(ctx context.Context) ([]store.Credential, error) { return p.inner.Credentials(ctx, account) })
}

func (p *port) PurgeCredentials(ctx context.Context, prefix string, before time.Time, limit int) (int, error) {
	return through(ctx, p, "PurgeCredentials", func(ctx context.Context) (int, error) { return p.inner.PurgeCredentials(ctx, prefix, before, limit) })
}

func (p *port) RevokeCredential(ctx context.Context, account, id string, beside store.Writes) error {
	return callErr(ctx, p, "RevokeCredential", func(ctx context.Context) error { return p.inner.RevokeCredential(ctx, account, id, beside) })
}
