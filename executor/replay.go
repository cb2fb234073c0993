package executor

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/replay"
	"github.com/fermata-go/fermata/store"
)

// MaxReplay is how many rulings [Executor.Replay] looks at.
const MaxReplay = 50_000

// Replay applies other rules to the rulings of an account since a time, and says where they differ. Earlier rulings are read as far back as the limits of
// the rules look back. Rulings of runs that were deleted are gone.
func (e *Executor) Replay(ctx context.Context, account string, candidate *policy.Set, since time.Time) (replay.Past, error) {
	from := since.Add(-candidate.Window())
	return replay.Against(candidate, e.rulings(ctx, account, from), replay.Scope{Since: since, Most: MaxReplay})
}

// rulings goes through the rulings of an account, the oldest first.
func (e *Executor) rulings(ctx context.Context, account string, from time.Time) iter.Seq2[replay.Ruled, error] {
	return func(yield func(replay.Ruled, error) bool) {
		for paper, err := range e.papers(ctx, account, rulingPaper, store.PaperFilter{After: rulingTime(from), Limit: rulingsAtOnce}) {
			if err != nil {
				yield(replay.Ruled{}, err)
				return
			}
			if paper.Body == nil {
				continue // filed with Desk.ForgetRulings
			}
			r, err := e.readRuling(paper)
			if ended := ctx.Err(); ended != nil {
				err = ended // rules may take long for each
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (e *Executor) readRuling(paper store.Paper) (r replay.Ruled, err error) {
	if err = e.readBody(paper, &r); err != nil {
		err = fmt.Errorf("executor: ruling %s: %w", paper.ID, err)
	}
	return r, err
}
