package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// keeper is an executor that signs and checks its audit logs.
func keeper(t *testing.T, s store.Store, a executor.AuditConfig, log io.Writer) *executor.Executor {
	t.Helper()
	return office(t, s, new(dropper), func(c *executor.Config) {
		c.Audit = a
		c.Poll = time.Minute // no worker polls in this test
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	})
}

func folder(t *testing.T) *audit.CheckpointDir {
	t.Helper()
	f, err := audit.OpenCheckpointDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func turn(t *testing.T, e *executor.Executor, job string) executor.JobResult {
	t.Helper()
	if err := e.Hurry(job); err != nil {
		t.Fatal(err)
	}
	pass, err := e.Turn(job)
	if err != nil {
		t.Fatal(err)
	}
	return pass
}

func sizes(t *testing.T, e *executor.Executor, account string) (list []int64) {
	t.Helper()
	checkpoints, _, err := e.AuditCheckpoints(t.Context(), account, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checkpoints {
		list = append(list, c.Size)
	}
	return list
}

// New audit records are signed, in the store and outside of it, and can be verified with the public
// key. A log without new records is not signed again.
func TestSigning_SignsNewRecords(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		outside := folder(t)
		e := keeper(t, s, executor.AuditConfig{Key: audit.NewKey(), CheckpointDir: outside}, t.Output())
		if pass := turn(t, e, executor.SignJob); pass.Accounts != 0 || pass.FinishedAt.IsZero() {
			t.Fatalf("signing an empty store: %+v", pass)
		}
		startAs(t, e, "req")
		for range 2 { // the second time there are no new records
			if pass := turn(t, e, executor.SignJob); pass.Accounts != 1 || pass.Failed+pass.Invalid != 0 {
				t.Fatalf("signing pass: %+v", pass)
			}
		}
		if got := sizes(t, e, "acme"); len(got) != 1 {
			t.Fatalf("signed sizes: %v", got)
		}
		if _, err := says(t, e, "bob", "1", yes); err != nil {
			t.Fatal(err)
		}
		turn(t, e, executor.SignJob)
		signed, public, err := e.AuditCheckpoints(t.Context(), "acme", 0, 100)
		if err != nil || len(signed) != 2 {
			t.Fatalf("signed checkpoints: %+v, %v", signed, err)
		}
		if others, _, err := e.AuditCheckpoints(t.Context(), "other", 0, 100); err != nil || len(others) != 0 {
			t.Errorf("I8: checkpoints of another account: %+v, %v", others, err)
		}
		trust, err := audit.NewTrust(public)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := outside.Notes("acme")
		if err != nil || len(kept) != 2 || !bytes.Equal(kept[1], signed[1].Note) {
			t.Errorf("checkpoints outside the store: %q, %v", kept, err)
		}
		report, err := audit.Verify(t.Context(), audit.NewStoreLog(s), "acme", audit.VerifyOptions{Trust: trust, KnownCheckpoints: kept}, t.Output())
		if err != nil || report.Signed != signed[1].Size || report.Checkpoints != 4 {
			t.Errorf("verification report: %+v, %v", report, err)
		}
	})
}

// The server checks the checkpoints that it signed and stored outside, before and after a change of
// the signing key. Regression: the public key is in the directory and also comes with the signing
// key. A key that was present twice was taken for a forged one, so every check failed.
func TestChecking_LogWithOutsideCheckpointsIsSound(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		outside := folder(t)
		for n := range 2 {
			e := keeper(t, s, executor.AuditConfig{Key: audit.NewKey(), CheckpointDir: outside, CheckEvery: time.Hour}, t.Output())
			began(t, e, fmt.Sprint("drop-", n), "inproc:drop", `{"table":"users"}`)
			for _, job := range []string{executor.CheckJob, executor.SignJob, executor.CheckJob} {
				if pass := turn(t, e, job); pass.Accounts != 1 || pass.Failed+pass.Invalid != 0 {
					t.Errorf("key %d, %s: %+v", n+1, job, pass)
				}
			}
		}
	})
}

// A log that was rewritten is never signed, even if the attacker also removed the old checkpoints
// from the store: the copies outside show it.
func TestI12_RewrittenLogIsNotSigned(t *testing.T) {
	key, outside := audit.NewKey(), folder(t)
	honest := keeper(t, memory.NewStore(nil), executor.AuditConfig{Key: key, CheckpointDir: outside}, t.Output())
	startAs(t, honest, "req")
	turn(t, honest, executor.SignJob)

	var log bytes.Buffer
	forged := keeper(t, memory.NewStore(nil), executor.AuditConfig{Key: key, CheckpointDir: outside, CheckEvery: time.Hour}, &log)
	startAs(t, forged, "mallory")
	if _, err := says(t, forged, "bob", "1", yes); err != nil { // the forged log may be longer
		t.Fatal(err)
	}
	if pass := turn(t, forged, executor.SignJob); pass.Invalid != 1 {
		t.Errorf("signing pass: %+v", pass)
	}
	if got := sizes(t, forged, "acme"); len(got) != 0 {
		t.Errorf("signed sizes: %v", got)
	}
	if pass := turn(t, forged, executor.CheckJob); pass.Invalid != 1 {
		t.Errorf("checking pass: %+v", pass)
	}
	if notes, err := outside.Notes("acme"); err != nil || len(notes) != 1 {
		t.Errorf("checkpoints outside the store: %d, %v", len(notes), err)
	}
	if text := log.String(); !strings.Contains(text, "does not extend the signed checkpoint") || !strings.Contains(text, "account=acme") {
		t.Errorf("log output: %s", text)
	}
}

// A truncated log is not signed either: the checkpoints in the store show it.
func TestI12_TruncatedLogIsNotSigned(t *testing.T) {
	key := audit.NewKey()
	s := memory.NewStore(nil)
	e := keeper(t, s, executor.AuditConfig{Key: key}, t.Output())
	startAs(t, e, "req")
	head, err := audit.NewStoreLog(s).Head(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	longer := memory.NewStore(nil)
	other := keeper(t, longer, executor.AuditConfig{Key: key}, t.Output())
	startAs(t, other, "req")
	if _, err := says(t, other, "bob", "1", yes); err != nil {
		t.Fatal(err)
	}
	turn(t, other, executor.SignJob)
	signed, _, err := other.AuditCheckpoints(t.Context(), "acme", 0, 1)
	if err != nil || len(signed) != 1 || signed[0].Size <= head.Size {
		t.Fatalf("signed checkpoints: %+v, %v", signed, err)
	}
	if err := audit.NewStoreLog(s).AddCheckpoint(t.Context(), "acme", signed[0]); err != nil {
		t.Fatal(err)
	}
	if pass := turn(t, e, executor.SignJob); pass.Invalid != 1 || len(sizes(t, e, "acme")) != 1 {
		t.Errorf("signing pass %+v, signed sizes %v", pass, sizes(t, e, "acme"))
	}
}

// The check counts findings, logs each one once, and reports nothing about runs that are being
// executed.
func TestChecking_CountsFindings(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var log bytes.Buffer
		e := keeper(t, s, executor.AuditConfig{CheckEvery: time.Hour}, &log)
		startAs(t, e, "req")
		if pass := turn(t, e, executor.CheckJob); len(pass.Findings) != 0 || pass.Accounts != 1 {
			t.Fatalf("checking pass: %+v", pass)
		}
		lease, err := s.Create(t.Context(), store.NewRun{Account: "acme", ID: "r", StateKey: "r", Provider: "inproc", Graph: "drop", Owner: "mallory", Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "x", Attempt: 1, ActionDigest: "d", Ruling: &store.PolicyRuling{By: "mallory"}}); err != nil {
			t.Fatal(err)
		}
		turn(t, e, executor.CheckJob)
		pass := turn(t, e, executor.CheckJob)
		if pass.Findings[reconcile.SeverityPage][reconcile.FindingRunNotApproved] != 1 || pass.Findings[reconcile.SeverityPage][reconcile.FindingIntentNotRecorded] != 1 {
			t.Errorf("checking pass: %+v", pass)
		}
		if n := strings.Count(log.String(), "finding=run_not_approved"); n != 1 || strings.Contains(log.String(), "users") {
			t.Errorf("finding logged %d times: %s", n, &log)
		}
		overview, err := e.Overview(t.Context())
		if err != nil || overview.LastCheck.Findings[reconcile.SeverityPage][reconcile.FindingRunNotApproved] != 1 || len(overview.OpenRequests) != 1 || overview.OpenRequests[0].Count != 1 {
			t.Errorf("overview: %+v, %v", overview, err)
		}
	})
}

// passes counts passes over the accounts.
type passes struct {
	store.Store
	begun atomic.Int64
	hold  bool // until the context ends
}

func (p *passes) AuditAccounts(ctx context.Context, after string, limit int) ([]string, string, error) {
	p.begun.Add(1)
	if p.hold {
		<-ctx.Done()
		return nil, "", ctx.Err()
	}
	return p.Store.AuditAccounts(ctx, after, limit)
}

// Of several processes one does a periodic job, once per interval. Another process takes over if
// the first one died.
func TestJobs_OneProcessAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &passes{Store: memory.NewStore(nil)}
		for range 3 {
			keeper(t, s, executor.AuditConfig{CheckEvery: time.Hour}, t.Output()).StartWorkers()
		}
		for hour := int64(1); hour <= 3; hour++ {
			synctest.Wait()
			if got := s.begun.Load(); got != hour {
				t.Errorf("in hour %d: %d passes", hour, got)
			}
			time.Sleep(time.Hour + time.Minute) // synctest time
		}
		// One process holds the job and stops renewing it.
		synctest.Wait()
		before := s.begun.Load()
		paper, err := s.Document(t.Context(), "", executor.JobDocument, executor.CheckJob)
		if err == nil {
			err = s.CommitWrites(t.Context(), "", store.Writes{Documents: []store.DocumentChange{{
				Kind: paper.Kind, ID: paper.ID, BaseRevision: paper.Revision, Index: paper.Index, DueAt: time.Now().Add(executor.JobLease),
			}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(executor.JobLease - time.Second)
		synctest.Wait()
		if got := s.begun.Load(); got != before {
			t.Errorf("%d other passes began while one was in progress", got-before)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := s.begun.Load(); got != before+1 {
			t.Errorf("no takeover: %d passes", got-before)
		}
	})
}

// A process that is stopped releases a periodic job at once.
func TestJobs_AreReleasedOnStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &passes{Store: memory.NewStore(nil), hold: true}
		e := keeper(t, s, executor.AuditConfig{CheckEvery: time.Hour}, t.Output())
		e.StartWorkers()
		synctest.Wait()
		// longer than the lease: the job is still in progress and renews it
		time.Sleep(10 * time.Minute)
		if other := keeper(t, s, executor.AuditConfig{CheckEvery: time.Hour}, t.Output()); s.begun.Load() != 1 {
			t.Error(s.begun.Load(), other)
		}
		paper, err := s.Document(t.Context(), "", executor.JobDocument, executor.CheckJob)
		if err != nil || !paper.DueAt.After(time.Now()) {
			t.Errorf("the job looks unclaimed: due at %v, %v", paper.DueAt, err)
		}
		if err := e.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		paper, err = s.Document(t.Context(), "", executor.JobDocument, executor.CheckJob)
		if err != nil || paper.DueAt.After(time.Now()) {
			t.Errorf("due only at %v, %v", paper.DueAt, err)
		}
	})
}

// A job that ran while the clock was wrong would be due again when the clock reaches that time once
// more, possibly years later. Until then nothing would be signed, without notice.
func TestI12_WrongClockDoesNotEndTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &passes{Store: memory.NewStore(nil)}
		err := s.CommitWrites(t.Context(), "", store.Writes{Documents: []store.DocumentChange{{
			Kind: executor.JobDocument, ID: executor.CheckJob, Index: []byte(`{}`), DueAt: time.Now().AddDate(10, 0, 0),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		keeper(t, s, executor.AuditConfig{CheckEvery: time.Hour}, t.Output()).StartWorkers()
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		if got := s.begun.Load(); got < 3 || got > 4 {
			t.Errorf("%d passes in three hours", got)
		}
	})
}
