package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// pauseDocumentsSQL pauses the slow Store after it has changed a document or added an audit line.
const pauseDocumentsSQL = `
CREATE CONSTRAINT TRIGGER pause_paper AFTER INSERT OR UPDATE ON fermata.papers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fermata.pause();
CREATE CONSTRAINT TRIGGER pause_line AFTER INSERT ON fermata.audit DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fermata.pause()`

func newDocumentRace(t *testing.T) *race {
	t.Helper()
	r := newRace(t)
	mustExec(t, r.conn, pauseDocumentsSQL)
	return r
}

// writesOf returns an audit line and documents.
func writesOf(act string, documents ...store.DocumentChange) store.Writes {
	return store.Writes{Documents: documents, Audit: [][]byte{fmt.Appendf(nil, `{"type":%q}`, act)}}
}

func requestChange(id string, base int64) store.DocumentChange {
	return store.DocumentChange{Kind: store.RequestDocument, ID: id, Run: "r", BaseRevision: base}
}

// waitingWithRequests creates run r, which waits for these interrupts, with their requests.
func waitingWithRequests(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	asked := fixture.WaitingEnd(nil, ids...)
	asked.Writes = writesOf("asked")
	for _, id := range ids {
		asked.Writes.Documents = append(asked.Writes.Documents, requestChange(id, 0))
	}
	if _, err := s.EndExecution(t.Context(), fixture.CreateRun(t, s, "r"), asked); err != nil {
		t.Fatal(err)
	}
}

// wantAudit verifies the chain of an account and compares its content.
func wantAudit(t *testing.T, s *Store, account string, want ...string) {
	t.Helper()
	var got []string
	for _, line := range verifiedAudit(t, s, account) {
		var said struct{ Type string }
		if err := json.Unmarshal(line.Raw, &said); err != nil {
			t.Fatal(err)
		}
		got = append(got, said.Type)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the audit log of %s has %q, not %q", account, got, want)
	}
}

// verifiedAudit returns an audit log after verifying its chain up to the head.
func verifiedAudit(t *testing.T, s *Store, account string) (all []store.AuditLine) {
	t.Helper()
	var head chain.Head
	for {
		lines, err := s.AuditLines(t.Context(), account, head.Seq, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			break
		}
		for _, line := range lines {
			if !bytes.HasPrefix(line.Raw, fmt.Appendf(nil, `{"v":1,"seq":%d,"prev":"%x",`, head.Seq+1, head.Hash)) || line.Seq != head.Seq+1 {
				t.Fatalf("line %d does not follow %v: %s", line.Seq, head, line.Raw)
			}
			head = chain.Head{Seq: line.Seq, Hash: chain.Hash(line.Raw)}
		}
		all = append(all, lines...)
	}
	if end, err := s.AuditHead(t.Context(), account); err != nil || end != head {
		t.Fatalf("the head of %s is %v, not %v: %v", account, end, head, err)
	}
	return all
}

// A decision on a request that was just changed is based on outdated data.
func TestDecide_WaitsForConcurrentRequestChange(t *testing.T) {
	r := newDocumentRace(t)
	waitingWithRequests(t, r.fast, "i")
	extended := requestChange("i", 1)
	extended.InterruptDeadline = time.Now().Add(time.Hour)
	said := fixture.Decision("r", "1", store.VerdictApprove, "i")
	said.Writes = writesOf("decided", requestChange("i", 1))
	r.between(
		func() {
			if err := r.slow.CommitWrites(t.Context(), "acme", writesOf("extended", extended)); err != nil {
				t.Errorf("CommitWrites: %v", err)
			}
		},
		func() {
			if receipt, err := r.fast.Decide(t.Context(), said); !errors.Is(err, store.ErrStale) {
				t.Errorf("Decide: %+v, %v; want ErrStale", receipt, err)
			}
		},
	)
	r.wantStatus("r", store.StatusWaiting)
	said.Writes = writesOf("decided", requestChange("i", 2))
	fixture.MustAccept(t, r.fast, said)
	wantAudit(t, r.fast, "acme", "asked", "extended", "decided")
}

// The other order. There is no deadlock: both lock the run before the interrupt and the request.
func TestCommitWrites_WaitsForConcurrentDecision(t *testing.T) {
	r := newDocumentRace(t)
	waitingWithRequests(t, r.fast, "i")
	extended := requestChange("i", 1)
	extended.InterruptDeadline = time.Now().Add(time.Hour)
	said := fixture.Decision("r", "1", store.VerdictApprove, "i")
	said.Writes = writesOf("decided", requestChange("i", 1))
	r.between(
		r.decides(r.slow, said),
		func() {
			if err := r.fast.CommitWrites(t.Context(), "acme", writesOf("extended", extended)); !errors.Is(err, store.ErrStale) {
				t.Errorf("CommitWrites: %v; want ErrStale", err)
			}
		},
	)
	wantAudit(t, r.fast, "acme", "asked", "decided")
}

// Writers of two accounts do not wait for each other; two writers of one account do.
func TestI12_AuditWritersOfAnAccountAreSerialized(t *testing.T) {
	r := newDocumentRace(t)
	amend := func(s *Store, account, act string) func() {
		return func() {
			if err := s.CommitWrites(t.Context(), account, writesOf(act)); err != nil {
				t.Errorf("%s: %v", act, err)
			}
		}
	}
	amend(r.fast, "acme", "begun")() // there is a head to follow
	r.between(func() {
		amend(r.slow, "acme", "first")()
	}, func() {
		amend(r.fast, "other", "elsewhere")() // and waits only then
		amend(r.fast, "acme", "second")()
	})
	wantAudit(t, r.fast, "acme", "begun", "first", "second")
	wantAudit(t, r.fast, "other", "elsewhere")
}

// A request that is created during a decision was not seen by the decider.
func TestDecide_RequestCreatedConcurrentlyReturnsErrStale(t *testing.T) {
	r := newDocumentRace(t)
	fixture.EndExecution(t, r.fast, fixture.CreateRun(t, r.fast, "r"), nil, "i")
	r.pause(func() {
		if receipt, err := r.slow.Decide(t.Context(), fixture.Decision("r", "1", store.VerdictApprove, "i")); !errors.Is(err, store.ErrStale) {
			t.Errorf("Decide: %+v, %v; want ErrStale", receipt, err)
		}
	})
	// one row: it does not wait
	if err := r.fast.CommitWrites(t.Context(), "acme", writesOf("asked", requestChange("i", 0))); err != nil {
		t.Error(err)
	}
	r.resume()
	r.wantStatus("r", store.StatusWaiting)
	wantAudit(t, r.fast, "acme", "asked")
}

// A change of a deadline has the request and needs the interrupt; a decision has the interrupt and
// needs the request. Both lock the run first to avoid a deadlock.
func TestCommitWrites_DoesNotDeadlockWithDecide(t *testing.T) {
	r := newRace(t)
	waitingWithRequests(t, r.fast, "i")
	tx, err := r.fast.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `SELECT FROM papers WHERE id = 'i' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	waiting := func(count int) {
		t.Helper()
		waitFor(t, r.conn, fmt.Sprintf(`SELECT count(*) = %d FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`, count))
	}
	extended := requestChange("i", 1)
	extended.InterruptDeadline = time.Now().Add(time.Hour)
	r.calls.Go(func() {
		if err := r.fast.CommitWrites(t.Context(), "acme", writesOf("extended", extended)); err != nil {
			t.Errorf("CommitWrites: %v", err)
		}
	})
	waiting(1)
	said := fixture.Decision("r", "1", store.VerdictApprove, "i")
	said.Writes = writesOf("decided", requestChange("i", 1))
	r.calls.Go(func() {
		if receipt, err := r.fast.Decide(t.Context(), said); !errors.Is(err, store.ErrStale) {
			t.Errorf("Decide: %+v, %v; want ErrStale", receipt, err)
		}
	})
	waiting(2)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.calls.Wait()
	wantAudit(t, r.fast, "acme", "asked", "extended")
}

// I12: after a kill of the server the chain is valid, and every change has its audit line.
func TestI12_KilledServerLeavesNoChangeWithoutAuditLine(t *testing.T) {
	const people, enough = 4, 40
	t.Parallel() // it has its own server
	cluster := pgtest.Start(t)
	s := mustOpen(t, cluster.Database(t), Config{})
	written := make(chan struct{})
	var amending sync.WaitGroup
	for n := range people {
		amending.Go(func() {
			for round := 0; ; round++ {
				id := fmt.Sprintf("%d-%d", n, round)
				err := s.CommitWrites(context.Background(), "acme", writesOf(id, store.DocumentChange{Kind: "notice", ID: id}))
				if err != nil {
					if !errors.Is(err, ErrUnavailable) {
						t.Errorf("%v; want ErrUnavailable", err)
					}
					return
				}
				written <- struct{}{}
			}
		})
	}
	go func() {
		amending.Wait()
		close(written)
	}()
	acknowledged := 0
	for range written {
		if acknowledged++; acknowledged == enough {
			cluster.Kill(t)
		}
	}
	cluster.Restart(t)
	documents, err := s.Documents(t.Context(), "acme", "notice", store.DocumentFilter{Limit: 1000})
	if err != nil || len(documents) < acknowledged {
		t.Fatalf("%d documents, %d were acknowledged: %v", len(documents), acknowledged, err)
	}
	lines := verifiedAudit(t, s, "acme")
	for _, p := range documents {
		named := 0
		for _, line := range lines {
			if bytes.HasSuffix(line.Raw, fmt.Appendf(nil, `"type":%q}`, p.ID)) {
				named++
			}
		}
		if named != 1 {
			t.Errorf("%s has %d lines", p.ID, named)
		}
	}
	if len(lines) != len(documents) {
		t.Errorf("%d lines for %d documents", len(lines), len(documents))
	}
}

// A document of a run that is being deleted would stay forever. The second transaction waits, and
// then the run is gone, or the document is deleted with it.
func TestI15_DocumentDoesNotOutliveItsRun(t *testing.T) {
	late := store.Writes{Documents: []store.DocumentChange{{Kind: "vote", ID: "v", Run: "r"}}}
	for name, deleteFirst := range map[string]bool{"deleted first": true, "written first": false} {
		t.Run(name, func(t *testing.T) {
			r := newRace(t)
			mustExec(t, r.conn, `
CREATE CONSTRAINT TRIGGER pause_paper AFTER INSERT ON fermata.papers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fermata.pause()`)
			mustExec(t, r.conn, `
CREATE CONSTRAINT TRIGGER pause_forget AFTER DELETE ON fermata.runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fermata.pause()`)
			if _, err := r.fast.EndExecution(t.Context(), fixture.CreateRun(t, r.fast, "r"), store.ExecutionEnd{Status: store.StatusCompleted}); err != nil {
				t.Fatal(err)
			}
			var deleted, written error
			forget := func(s *Store) func() {
				return func() { deleted = s.DeleteRun(t.Context(), "acme", "r", store.Writes{}) }
			}
			amend := func(s *Store) func() { return func() { written = s.CommitWrites(t.Context(), "acme", late) } }
			want := error(nil)
			if deleteFirst {
				r.between(forget(r.slow), amend(r.fast))
				want = store.ErrNotFound
			} else {
				r.between(amend(r.slow), forget(r.fast))
			}
			if deleted != nil || !errors.Is(written, want) {
				t.Errorf("deleted: %v, written: %v", deleted, written)
			}
			if left, err := r.fast.Documents(t.Context(), "acme", "vote", store.DocumentFilter{}); err != nil || len(left) != 0 {
				t.Errorf("left are %+v, %v", left, err)
			}
		})
	}
}
