package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// The grants and counters of an account are erased with it. The audit log stays, and records that
// the grant ended.
func TestErase_DeletesGrantsAndCounters(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid atomic.Int64
		e := bank(t, s, payer(t, &paid, "pay"), strings.NewReplacer("deadline: 1h}", "deadline: 1h, remember_max: 1h}", "max: 1000", "max: 1200").Replace(budgeted))
		pays := func(account string) {
			t.Helper()
			asked := waits(t, mustRun(t, e, executor.RunRequest{Account: account, StateKey: "p-1", Graph: "inproc:pay", Input: json.RawMessage(`{"cents":600}`), Actor: "req"}))
			id := asked.Interrupts[0].ID
			completed(t, mustRun(t, e, executor.RunRequest{
				Account: account, StateKey: "p-1", ResumeID: "r-" + id, Actor: "ann", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(yes)}},
			}))
			if _, err := e.CreateGrant(t.Context(), account, id, executor.GrantRequest{By: "ann", TTL: time.Hour, MaxUses: 2}); err != nil {
				t.Fatal(err)
			}
		}
		pays("acme")
		pays("other")
		if _, err := e.EraseAccount(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []store.DocumentKind{"grant", "counter"} {
			papers, err := s.Documents(t.Context(), "acme", kind, store.DocumentFilter{})
			if err != nil || len(papers) != 1 || papers[0].Body != nil || string(papers[0].Index) != "{}" {
				t.Errorf("%s documents: %+v, %v", kind, papers, err)
			}
		}
		if list, err := e.ListGrants(t.Context(), "acme"); err != nil || len(list) != 0 {
			t.Errorf("grants %+v, %v", list, err)
		}
		papers, err := s.Documents(t.Context(), "acme", "grant", store.DocumentFilter{})
		if err == nil {
			err = e.RevokeGrant(t.Context(), "acme", papers[0].ID, by("ann"))
		}
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoke an erased grant: %v", err)
		}
		if list, err := e.ListGrants(t.Context(), "other"); err != nil || len(list) != 1 {
			t.Errorf("I8: the grants of another account are %+v, %v", list, err)
		}
		log := lines(t, s)
		if last := log[len(log)-1]; last != "grant.revoked" || !slices.Contains(log, "effect.ended") {
			t.Errorf("audit lines: %q", log)
		}
		if _, err := e.EraseAccount(t.Context(), "acme"); err != nil || len(lines(t, s)) != len(log) {
			t.Errorf("erase again: %v, %d lines", err, len(lines(t, s)))
		}
		pays("acme") // the account starts again with its whole budget
		if paid.Load() != 1800 {
			t.Errorf("paid %d", paid.Load())
		}
	})
}

// Regression: the newest run could not be deleted, because its provider was missing, and everything
// else of the account stayed with it.
func TestErase_RunThatCannotBeDeletedDoesNotBlockOthers(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := executorOf(t, s, spy(t), nil)
		for i := range 3 {
			startSpy(t, e, fmt.Sprint("spy-", i))
		}
		gone := executorOf(t, s, &scripted{execute: func(int64, provider.Execution) (provider.Result, error) { return done, nil }}, nil)
		completed(t, mustRun(t, gone, scriptedStart()))
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 3 || !errors.Is(err, executor.ErrGraphNotFound) {
			t.Errorf("%d erased, %v", n, err)
		}
		if left, err := s.List(t.Context(), "acme", store.RunFilter{}); err != nil || len(left) != 1 || left[0].StateKey != "x-1" {
			t.Errorf("remaining runs: %+v, %v", left, err)
		}
		if n, err := gone.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Errorf("erase with the provider: %d, %v", n, err)
		}
	})
}

// hesitant is a store in which a run is deleted at the moment when a caller is about to write to
// it.
type hesitant struct {
	store.Store
	once  sync.Once
	erase func()
}

func (h *hesitant) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	if len(beside.RunsOfNewDocuments()) > 0 {
		h.once.Do(h.erase)
	}
	return h.Store.CommitWrites(ctx, account, beside)
}

func (h *hesitant) Decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	h.once.Do(h.erase)
	return h.Store.Decide(ctx, d)
}

// Regression: a caller that read a run before its deletion and wrote after it left documents and
// resume ids that were never deleted, in every account that was erased while people worked.
func TestI15_LateWritesLeaveNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		for name, says := range map[string]func(e *executor.Executor, id string) error{
			"a decision": func(e *executor.Executor, id string) error {
				_, err := e.Run(t.Context(), word("ann", "drop-1", "r1", id, yes))
				return err
			},
			"vote on a finished run": func(e *executor.Executor, _ string) error {
				_, err := e.Run(t.Context(), word("ann", "drop-1", "r2", "int_unknown", yes))
				return err
			},
		} {
			late := &hesitant{Store: s}
			d := new(dropper)
			e := d.executor(t, late, nil)
			id := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
			late.erase = func() {
				if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
					t.Error(n, err)
				}
			}
			if err := says(e, id); err == nil || d.dropped.Load() != 0 {
				t.Errorf("%s: %v, dropped %d times", name, err, d.dropped.Load())
			}
			for _, kind := range []store.DocumentKind{"run", "vote", "notice", "resume", "back", store.RequestDocument} {
				if left := papersOf(t, s, "acme", kind); len(left) != 0 {
					t.Errorf("%s: %d documents of kind %s are left", name, len(left), kind)
				}
			}
			if size, err := s.Size(t.Context()); err != nil || size.Rows["resumes"] != 0 {
				t.Errorf("%s: %d resumes are left, %v", name, size.Rows["resumes"], err)
			}
		}
	})
}

// granting is a store in which the account is erased at the moment when a grant is created from one
// of its approvals.
type granting struct {
	store.Store
	once  sync.Once
	erase func()
}

func (g *granting) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	if slices.ContainsFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == "grant" && p.BaseRevision == 0 }) {
		g.once.Do(g.erase)
	}
	return g.Store.CommitWrites(ctx, account, beside)
}

// Regression: a grant that was created while its account was erased stayed, with the arguments of
// the action. It belongs to no run with which it could have been deleted, and would have allowed
// the same action when the account was used again.
func TestErase_GrantIsNotCreatedDuringErasure(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var paid atomic.Int64
		late := &granting{Store: s}
		e := bank(t, late, payer(t, &paid, "pay"), strings.Replace(budgeted, "deadline: 1h}", "deadline: 1h, remember_max: 1h}", 1))
		late.erase = func() {
			if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
				t.Error(n, err)
			}
		}
		start := executor.RunRequest{Account: "acme", StateKey: "p-1", Graph: "inproc:pay", Input: json.RawMessage(`{"cents":100}`), Actor: "req"}
		id := waits(t, mustRun(t, e, start)).Interrupts[0].ID
		completed(t, mustRun(t, e, word("ann", "p-1", "r-1", id, yes)))
		if g, err := e.CreateGrant(t.Context(), "acme", id, executor.GrantRequest{By: "ann", TTL: time.Hour, MaxUses: 2}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("CreateGrant = %+v, %v; want ErrNotFound", g, err)
		}
		if left := papersOf(t, s, "acme", "grant"); len(left) != 0 {
			t.Errorf("remaining grants: %+v", left)
		}
		waits(t, mustRun(t, e, start))
	})
}

func (h *hesitant) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	h.once.Do(h.erase)
	return h.Store.Load(ctx, key)
}

// A person who answers a request while the account is erased gets "run not found". Regression: the
// error was not understandable and invited a retry.
func TestErase_AnswerDuringErasureReturnsRunNotFound(t *testing.T) {
	late, d := &hesitant{Store: memory.NewStore(nil), erase: func() {}}, new(dropper)
	e := d.executor(t, late, nil)
	id := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
	late.once, late.erase = sync.Once{}, func() {
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Error(n, err)
		}
	}
	if outcome, err := e.Run(t.Context(), word("ann", "drop-1", "r", id, yes)); !errors.Is(err, executor.ErrRunNotFound) {
		t.Errorf("Run = %#v, %v; want run not found", outcome, err)
	}
}

// slowest is a store in which a decision is recorded and the account erased before the response
// arrives.
type slowest struct {
	store.Store
	erase func()
}

func (s *slowest) Decide(ctx context.Context, d store.Decision) (store.DecisionReceipt, error) {
	d.Claim = nil // another process has the run
	receipt, err := s.Store.Decide(ctx, d)
	s.erase()
	return receipt, err
}

func TestErase_WaitForAnOutcomeReturnsRunNotFound(t *testing.T) {
	slow, d := &slowest{Store: memory.NewStore(nil)}, new(dropper)
	e := d.executor(t, slow, nil)
	id := waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`)).Interrupts[0].ID
	slow.erase = func() {
		if n, err := e.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
			t.Error(n, err)
		}
	}
	outcome, err := e.Run(t.Context(), word("ann", "drop-1", "r", id, yes))
	if err != nil {
		t.Fatal(err)
	}
	failedWith(t, outcome, "deleted")
}

// growing is a store of an account that starts another run whenever one is deleted.
type growing struct {
	store.Store
	start func()
}

func (g *growing) DeleteRun(ctx context.Context, account, run string, beside store.Writes) error {
	defer g.start()
	return g.Store.DeleteRun(ctx, account, run, beside)
}

// Regression: erasing an account whose keys still worked did not end while the account started
// runs.
func TestErase_EndsWhileTheAccountStartsRuns(t *testing.T) {
	s, started := &growing{Store: memory.NewStore(nil)}, 0
	e := executorOf(t, s, spy(t), nil)
	s.start = func() {
		started++
		startSpy(t, e, fmt.Sprint("spy-", started))
	}
	s.start()
	if n, err := e.EraseAccount(t.Context(), "acme"); !errors.Is(err, executor.ErrAccountActive) || n != started-1 {
		t.Errorf("%d of %d erased, %v", n, started, err)
	}
	s.start = func() {}
	if n, err := e.EraseAccount(t.Context(), "acme"); err != nil || n != 1 {
		t.Errorf("%d erased, %v", n, err)
	}
}

// tardy is a store in which an account is erased after its due requests were listed and before they
// are processed.
type tardy struct {
	store.Store
	erase func()
}

func (s *tardy) DueDocuments(ctx context.Context, kind store.DocumentKind, limit int) ([]store.Document, error) {
	due, err := s.Store.DueDocuments(ctx, kind, limit)
	if kind == store.RequestDocument && len(due) > 0 {
		s.erase()
	}
	return due, err
}

// Regression: erasing an account caused errors about its due requests in the log and in the error
// metric.
func TestErase_DueRequestsOfErasedAccountAreNotErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log syncBuffer
		s, d := &tardy{Store: memory.NewStore(nil)}, new(dropper)
		e := d.executor(t, s, func(c *executor.Config) { c.Poll, c.Log = time.Minute, slog.New(slog.NewTextHandler(&log, nil)) })
		waits(t, began(t, e, "drop-1", "inproc:drop", `{"table":"users"}`))
		erased := 0
		s.erase = func() {
			n, err := e.EraseAccount(t.Context(), "acme")
			if erased += n; err != nil {
				t.Error(err)
			}
		}
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if erased != 1 || log.String() != "" {
			t.Errorf("%d erased, log output:\n%s", erased, log.String())
		}
	})
}

// crowded is a store in which another process deletes a run just before this one does.
type crowded struct {
	store.Store
	first func()
}

func (c *crowded) DeleteRun(ctx context.Context, account, run string, beside store.Writes) error {
	c.first()
	return c.Store.DeleteRun(ctx, account, run, beside)
}

// Regression: three replicas found the same runs to delete, and each one logged that it had deleted
// them.
func TestI12_DeletionOfARunIsRecordedOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		late := &crowded{Store: s}
		one, other := executorOf(t, late, spy(t), nil), executorOf(t, s, spy(t), nil)
		startSpy(t, one, "spy-1")
		late.first = func() {
			if n, err := other.EraseAccount(t.Context(), "acme"); n != 1 || err != nil {
				t.Error(n, err)
			}
		}
		if _, err := one.EraseAccount(t.Context(), "acme"); err != nil {
			t.Error(err)
		}
		if said := recorded[audit.PayloadsErased](t, s); len(said) != 1 {
			t.Errorf("the deletion is recorded %d times", len(said))
		}
	})
}
