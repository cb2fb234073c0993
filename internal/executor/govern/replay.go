package govern

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/store"
)

// MaxReplay is how many rulings [Executor.Replay] looks at.
const MaxReplay = 50_000

// Replay applies other rules to the rulings of an account since a time, and says where they differ.
// Earlier rulings are read as far back as the limits of the rules look back. Rulings of runs that
// were deleted are gone.
func (gv *Governor) Replay(ctx context.Context, account string, candidate *policy.Set, since time.Time) (replay.HistoryReport, error) {
	from := since.Add(-candidate.LongestWindow())
	return replay.CompareHistory(ctx, candidate, gv.rulingsSince(ctx, account, from), replay.HistoryOptions{Since: since, MaxRulings: MaxReplay})
}

// rulingsSince goes through the rulings of an account, the oldest first.
func (gv *Governor) rulingsSince(ctx context.Context, account string, from time.Time) iter.Seq2[replay.RecordedRuling, error] {
	return func(yield func(replay.RecordedRuling, error) bool) {
		for document, err := range gv.docs.Documents(ctx, account, docs.RulingKind, store.DocumentFilter{After: rulingTime(from), Limit: docs.RulingsPerPage}) {
			if err != nil {
				yield(replay.RecordedRuling{}, err)
				return
			}
			if document.Body == nil {
				continue // filed with DeskConfig.DiscardRulings
			}
			r, err := gv.decodeRuling(document)
			if ended := ctx.Err(); ended != nil {
				err = ended // rules may take long for each
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (gv *Governor) decodeRuling(document store.Document) (r replay.RecordedRuling, err error) {
	if err = gv.docs.DecodeBody(document, &r); err != nil {
		err = fmt.Errorf("executor: ruling %s: %w", document.ID, err)
	}
	return r, err
}
