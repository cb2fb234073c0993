package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// BenchmarkGate takes runs from interrupt to interrupt: decided, claimed, an effect begun and
// ended, execution ended. Five transactions.
func BenchmarkGate(b *testing.B) {
	for _, runs := range []int{1, 8} {
		b.Run(fmt.Sprint(runs, " runs"), func(b *testing.B) {
			s := mustOpen(b, pgtest.New(b), Config{MaxConns: runs})
			todo := make(chan struct{})
			var working sync.WaitGroup
			for n := range runs {
				id := fmt.Sprint("run-", n)
				fixture.EndExecution(b, s, fixture.CreateRun(b, s, id), nil, id+"/0")
				working.Go(func() {
					gate := 0
					for range todo {
						if err := runGate(b, s, id, gate); err != nil {
							b.Error(err)
						}
						gate++
					}
				})
			}
			for b.Loop() {
				todo <- struct{}{}
			}
			close(todo)
			working.Wait()
		})
	}
}

func runGate(b *testing.B, s *Store, run string, gate int) error {
	ctx, id := b.Context(), fmt.Sprint(run, "/", gate)
	if receipt, err := s.Decide(ctx, fixture.Decision(run, id, store.VerdictApprove, id)); err != nil || receipt.Result != store.ResultAccepted {
		return fmt.Errorf("%s, %w", receipt.Result, err)
	}
	work, err := s.Claim(ctx, store.Claim{Owner: "bench", Lease: fixture.LeaseDuration, Account: "acme", Run: run})
	if err != nil || work == nil {
		return fmt.Errorf("%v, %w", work, err)
	}
	if _, _, err = s.BeginEffect(ctx, work.Lease, store.NewEffect{Interrupt: id, Attempt: 1, ActionDigest: "action-" + id}); err != nil {
		return err
	}
	if err = s.EndEffect(ctx, store.EffectEnd{Account: "acme", Interrupt: id, Attempt: 1, State: store.EffectSucceeded}); err != nil {
		return err
	}
	_, err = s.EndExecution(ctx, work.Lease, fixture.WaitingEnd([]string{id}, fmt.Sprint(run, "/", gate+1)))
	return err
}
