package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/internal/booktest"
)

// BenchmarkGate takes runs from question to question: decided, claimed, an effect begun and ended, given back. Five transactions.
func BenchmarkGate(b *testing.B) {
	for _, runs := range []int{1, 8} {
		b.Run(fmt.Sprint(runs, " runs"), func(b *testing.B) {
			s := mustOpen(b, pgtest.New(b), Config{MaxConns: runs})
			todo := make(chan struct{})
			var working sync.WaitGroup
			for n := range runs {
				id := fmt.Sprint("run-", n)
				booktest.Rest(b, s, booktest.Begin(b, s, id), nil, id+"/0")
				working.Go(func() {
					gate := 0
					for range todo {
						if err := passGate(b, s, id, gate); err != nil {
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

func passGate(b *testing.B, s *Store, run string, gate int) error {
	ctx, id := b.Context(), fmt.Sprint(run, "/", gate)
	if receipt, err := s.Decide(ctx, booktest.Say(run, id, store.Approve, id)); err != nil || receipt.Result != store.Accepted {
		return fmt.Errorf("%s, %w", receipt.Result, err)
	}
	work, err := s.Claim(ctx, store.Claim{Owner: "bench", Lease: booktest.Long, Account: "acme", Run: run})
	if err != nil || work == nil {
		return fmt.Errorf("%v, %w", work, err)
	}
	if _, _, err = s.Begin(ctx, work.Lease, store.NewEffect{Interrupt: id, Number: 1, Digest: "action-" + id}); err != nil {
		return err
	}
	if err = s.End(ctx, store.EffectEnd{Account: "acme", Interrupt: id, Number: 1, State: store.Succeeded}); err != nil {
		return err
	}
	_, err = s.Rest(ctx, work.Lease, booktest.Asking([]string{id}, fmt.Sprint(run, "/", gate+1)))
	return err
}
