package sqlite

import (
	"context"

	"github.com/fermata-go/fermata/store"
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

// Standing returns where a run stands, all of it as it was at one moment; see [store.Inbox].
func (s *Store) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	return snapshot(ctx, s, "look at a run in", func(t txn) (store.RunSnapshot, error) { return t.runSnapshot(ctx, account, stateKey, own) })
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

// addPaper adds a paper of the run to what is known of it, if there is one.
func (t txn) addDocument(ctx context.Context, s *store.RunSnapshot, kind store.DocumentKind, id string) error {
	paper, err := t.document(ctx, s.Run.Account, kind, id)
	if paper != nil {
		s.Documents = append(s.Documents, *paper)
	}
	return err
}
