package sqlite

import (
	"context"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// runSnapshotSQL reads neither the input nor the outcome, which may be large.
	runSnapshotSQL = `
SELECT account, run, state_key, generation, provider, graph, ref, NULL, NULL, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at
FROM runs INDEXED BY runs_generations
WHERE account = ?1 AND state_key = ?2 ORDER BY generation DESC LIMIT 1`

	pendingInterruptsSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i INDEXED BY interrupts_unapplied
WHERE i.account = ?1 AND i.run = ?2 AND i.applied = 0 AND i.state = 'pending' ORDER BY i.place`
)

// RunSnapshot returns a run with its open interrupts and documents, read in one transaction; see
// [store.Inbox].
func (s *Store) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	return snapshot(ctx, s, "read a run in", func(t txn) (store.RunSnapshot, error) { return t.runSnapshot(ctx, account, stateKey, own) })
}

func (t txn) runSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (s store.RunSnapshot, err error) {
	found, err := t.queryRow(ctx, runDest(&s.Run), runSnapshotSQL, account, stateKey)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return s, err
	}
	if s.Open, err = queryAll(ctx, t, scanInterrupt, pendingInterruptsSQL, account, s.Run.ID); err != nil {
		return s, err
	}
	for _, i := range s.Open {
		if err := t.addDocument(ctx, &s, store.RequestDocument, i.ID); err != nil {
			return s, err
		}
	}
	s.ReadAt = timeOf(t.now)
	return s, t.addDocument(ctx, &s, own, s.Run.ID)
}

// addDocument adds a document to the snapshot if it exists.
func (t txn) addDocument(ctx context.Context, s *store.RunSnapshot, kind store.DocumentKind, id string) error {
	paper, err := t.document(ctx, s.Run.Account, kind, id)
	if paper != nil {
		s.Documents = append(s.Documents, *paper)
	}
	return err
}
