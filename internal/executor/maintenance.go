package executor

import (
	"context"
	"io"
	"iter"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/admin"
	"github.com/fermata-go/fermata/internal/executor/periodic"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// AuditConfig says whether the audit logs of all accounts are signed and checked in the background.
type AuditConfig = admin.AuditConfig

// AuditQuery selects records of an audit log.
type AuditQuery = admin.AuditQuery

// AuditPage is a page of the records that an [AuditQuery] selects.
type AuditPage = admin.AuditPage

// MaxAuditScan is how many records of a log one search reads.
const MaxAuditScan = admin.MaxAuditScan

// JobResult is the result of the last run of a periodic job, in whichever process.
type JobResult = periodic.JobResult

// Overview is what operators see of the whole store.
type Overview = admin.Overview

// ResumableCheck is a run that has not ended, and whether this program can resume it.
type ResumableCheck = admin.ResumableCheck

// MaxCountedRequests is how many open requests an [Overview] counts at most.
const MaxCountedRequests = admin.MaxCountedRequests

// Maintenance are the methods of an [Executor] for operators: erasure, export, analytics, audit and
// re-encryption.
type Maintenance struct {
	admin *admin.Admin
	store *encrypted.Store
}

// EraseAccount ends all runs of an account and deletes everything that is known of them, and the
// grants, counters and conversations of the account. It returns how many runs it deleted, also
// after an error; it may be called again then. A run that cannot be deleted does not hold up the
// others. Values that cannot be decrypted are deleted as well, except for a run whose provider ref
// cannot be decrypted. The audit log stays. It returns ErrAccountActive if the account goes on
// starting runs.
func (m Maintenance) EraseAccount(ctx context.Context, account string) (int, error) {
	return m.admin.EraseAccount(ctx, account)
}

// ExportAccount writes everything that is known of an account as JSON in the clear: one line for
// each run, and then lines with the grants, counters and conversations of the account. It returns
// how many runs there were. Values that cannot be decrypted are left out and named in their line;
// then ExportAccount returns ErrUnreadable after everything else was written.
func (m Maintenance) ExportAccount(ctx context.Context, account string, w io.Writer) (int, error) {
	return m.admin.ExportAccount(ctx, account, w)
}

// CheckResumable checks for every run of all accounts that has not ended whether this program can
// resume it, as far as that can be known without doing so; see [provider.Checker]. It changes
// nothing, and other processes may work at the same time.
func (m Maintenance) CheckResumable(ctx context.Context) iter.Seq2[ResumableCheck, error] {
	return m.admin.CheckResumable(ctx)
}

// Analytics reports on the requests of an account. It reads all of them, page by page.
func (m Maintenance) Analytics(ctx context.Context, account string, query analytics.Query) (analytics.Report, error) {
	return m.admin.Analytics(ctx, account, query)
}

// AuditLines returns lines of an account's audit log, exactly as they are stored.
func (m Maintenance) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	return m.admin.AuditLines(ctx, account, after, limit)
}

// AuditRecords returns the records of an account that a query selects, newest first. It reads
// [MaxAuditScan] records at most.
func (m Maintenance) AuditRecords(ctx context.Context, account string, query AuditQuery) (AuditPage, error) {
	return m.admin.AuditRecords(ctx, account, query)
}

// AuditAbout returns the records about a request, oldest first, exactly as they are stored. It
// reads the whole log.
func (m Maintenance) AuditAbout(ctx context.Context, account, request string) ([][]byte, error) {
	return m.admin.AuditAbout(ctx, account, request)
}

// VerifyAudit verifies the log of an account against its signed checkpoints. An invalid log is not
// an error; the report has the problem.
func (m Maintenance) VerifyAudit(ctx context.Context, account string) (audit.VerifyReport, error) {
	return m.admin.VerifyAudit(ctx, account)
}

// ProveAudit returns the proof of a record as a file for [audit.CheckProof]. Errors are those of
// [audit.Prove]; audit.ErrNotSigned also if this installation does not sign.
func (m Maintenance) ProveAudit(ctx context.Context, account string, seq int64) ([]byte, error) {
	return m.admin.ProveAudit(ctx, account, seq)
}

// AuditBundle returns the evidence of a request. A caller who may not see the request gets the
// records only. It returns audit.ErrNotFound if the log has no records about it.
func (m Maintenance) AuditBundle(ctx context.Context, account, request string, maySee func(desk.Request) (bool, error)) (evidence.Bundle, error) {
	return m.admin.AuditBundle(ctx, account, request, maySee)
}

// AuditTrail returns what the log says about the actions of a run: its id, its state key, or one of
// its requests. It reads the whole log.
func (m Maintenance) AuditTrail(ctx context.Context, account, run string) ([]audit.Trail, error) {
	return m.admin.AuditTrail(ctx, account, run)
}

// AuditCheckpoints returns the signed checkpoints of an account's audit log that cover more than
// after records, the smallest first, and the public key of this installation; "" if it does not
// sign.
func (m Maintenance) AuditCheckpoints(ctx context.Context, account string, after int64, limit int) (list []audit.Checkpoint, public string, err error) {
	return m.admin.AuditCheckpoints(ctx, account, after, limit)
}

// Reconcile compares the audit log of an account with its runs and effects, and returns the
// differences, the worst first. It changes nothing, and other processes may work at the same time.
func (m Maintenance) Reconcile(ctx context.Context, account string) ([]reconcile.Finding, error) {
	return m.admin.Reconcile(ctx, account)
}

// Overview reads the state of the whole store. It counts the open requests, so it should not be
// called often.
func (m Maintenance) Overview(ctx context.Context) (Overview, error) { return m.admin.Overview(ctx) }

// ReencryptProgress counts the values that a re-encryption has seen and changed.
type ReencryptProgress = encrypted.ReencryptProgress

// Reencrypt encrypts everything in the store with the current key: see
// [encrypted.Store.ReencryptAll].
func (m Maintenance) Reencrypt(ctx context.Context, progress func(ReencryptProgress)) (ReencryptProgress, error) {
	return m.store.ReencryptAll(ctx, progress)
}
