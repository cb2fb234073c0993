package sqlite

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// benchRuns returns a store with n runs that each wait for one answer.
func benchRuns(b *testing.B, n int) *Store {
	b.Helper()
	s := mustOpen(b, filepath.Join(b.TempDir(), "fermata.db"))
	for _, text := range []string{
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO runs (account, run, state_key, generation, provider, graph, ref, input, input_digest, status, fence, owner, lease_until, created_at, updated_at)
SELECT b'acme', CAST('run-' || i AS BLOB), CAST('key-' || i AS BLOB), 1, b'inproc', b'graph', randomblob(80), randomblob(400), randomblob(32), 'running', 1, b'', 9e15, 0, 0 FROM n`, n),
		`INSERT INTO interrupts (account, id, run, place, address, kind, data, shown, action, timeout, created_at)
SELECT account, CAST('of-' || run AS BLOB), run, 1, b'node:review', b'approval', randomblob(600), CAST('shown' AS BLOB), CAST('action-of-' || run AS BLOB), 0, 0 FROM runs`,
		`UPDATE runs SET status = 'waiting', owner = NULL, lease_until = NULL`,
	} {
		if _, err := s.writer.ExecContext(b.Context(), inHex(text)); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func BenchmarkDecide(b *testing.B) {
	for _, deciders := range []int{1, 8} {
		b.Run(fmt.Sprint("deciders=", deciders), func(b *testing.B) {
			s := benchRuns(b, 20_000)
			var next atomic.Int64
			b.SetParallelism(deciders)
			b.ResetTimer()
			decide := func() {
				n := next.Add(1)
				run := fmt.Sprint("run-", n)
				if receipt, err := s.Decide(b.Context(), fixture.Decision(run, fmt.Sprint(n), store.VerdictApprove, "of-"+run)); err != nil || receipt.Result != store.ResultAccepted {
					b.Error(receipt, err)
				}
			}
			if deciders == 1 {
				for range b.N {
					decide()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						decide()
					}
				})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

func BenchmarkClaimAndRest(b *testing.B) {
	s := benchRuns(b, 20_000)
	if _, err := s.writer.ExecContext(b.Context(), `UPDATE runs SET status = 'ready', ready_no = rowid`); err != nil {
		b.Fatal(err)
	}
	claim := store.Claim{Owner: "bench", Lease: fixture.LeaseDuration}
	for b.Loop() {
		work, err := s.Claim(b.Context(), claim)
		if err != nil || work == nil {
			b.Fatal(work, err)
		}
		if _, err := s.EndExecution(b.Context(), work.Lease, fixture.WaitingEnd(nil, "next-"+work.Run.ID)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}

// BenchmarkClaimNothing measures a worker without work.
func BenchmarkClaimNothing(b *testing.B) {
	s := benchRuns(b, 20_000)
	for b.Loop() {
		if work, err := s.Claim(b.Context(), store.Claim{Owner: "bench", Lease: fixture.LeaseDuration}); err != nil || work != nil {
			b.Fatal(work, err)
		}
	}
}

// BenchmarkCycle measures everything that the store does for one approved effect: five
// transactions, each on disk.
func BenchmarkCycle(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "fermata.db"))
	lease := fixture.CreateRun(b, s, "r")
	var applied []string
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprint("i", n)
		fixture.EndExecution(b, s, lease, applied, id)
		fixture.MustAccept(b, s, fixture.Decision("r", id, store.VerdictApprove, id))
		lease = fixture.MustClaim(b, s, "r")
		if _, begun, err := s.BeginEffect(b.Context(), lease, store.NewEffect{Interrupt: id, Attempt: 1, ActionDigest: "action-" + id}); err != nil || !begun {
			b.Fatal(begun, err)
		}
		if err := s.EndEffect(b.Context(), store.EffectEnd{Account: "acme", Interrupt: id, Attempt: 1, State: store.EffectSucceeded}); err != nil {
			b.Fatal(err)
		}
		applied = []string{id}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}
