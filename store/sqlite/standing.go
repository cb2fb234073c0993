package sqlite

import (
	"context"

	"github.com/fermata-go/fermata/store"
)

const (
	// standingSQL reads neither the input nor the outcome, which may be large.
	standingSQL = `
SELECT account, run, state_key, generation, provider, graph, ref, NULL, NULL, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at
FROM runs INDEXED BY runs_generations
WHERE account = ?1 AND state_key = ?2 ORDER BY generation DESC LIMIT 1`

	pendingSQL = `
SELECT ` + interruptColumns + ` FROM interrupts AS i INDEXED BY interrupts_unapplied
WHERE i.account = ?1 AND i.run = ?2 AND i.applied = 0 AND i.state = 'pending' ORDER BY i.place`
)

// Standing returns where a run stands, all of it as it was at one moment; see [store.Inbox].
func (s *Store) Standing(ctx context.Context, account, stateKey string, own store.PaperKind) (store.Standing, error) {
	return see(ctx, s, "look at a run in", func(t turn) (store.Standing, error) { return t.standing(ctx, account, stateKey, own) })
}

func (t turn) standing(ctx context.Context, account, stateKey string, own store.PaperKind) (s store.Standing, err error) {
	found, err := t.find(ctx, runDest(&s.Run), standingSQL, account, stateKey)
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return s, err
	}
	if s.Open, err = list(ctx, t, scanInterrupt, pendingSQL, account, s.Run.ID); err != nil {
		return s, err
	}
	for _, i := range s.Open {
		if err := t.addPaper(ctx, &s, store.RequestPaper, i.ID); err != nil {
			return s, err
		}
	}
	s.At = atMicro(t.now)
	return s, t.addPaper(ctx, &s, own, s.Run.ID)
}

// addPaper adds a paper of the run to what is known of it, if there is one.
func (t turn) addPaper(ctx context.Context, s *store.Standing, kind store.PaperKind, id string) error {
	paper, err := t.paper(ctx, s.Run.Account, kind, id)
	if paper != nil {
		s.Papers = append(s.Papers, *paper)
	}
	return err
}
