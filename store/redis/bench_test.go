package redis

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/redistest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/store/postgres"
)

// BenchmarkLoad loads the same checkpoint alternately from PostgreSQL and through Redis. It reports
// both times, and two ratios of the load through Redis to the one from PostgreSQL: the time, and
// the CPU time of PostgreSQL's process (on Linux). The bytes are not compressible, like sealed
// values.
func BenchmarkLoad(b *testing.B) {
	connString := pgtest.New(b)
	inner := mustOpen(b, connString, postgres.Config{MaxConns: 1})
	s := mustNew(b, inner, mustClient(b, redistest.Start(b).URL()), Config{Timeout: waitTimeout})
	for _, size := range []struct{ parts, bytes int }{{5, 64}, {20, 1 << 10}, {20, 16 << 10}, {20, 128 << 10}, {10, 1 << 20}} {
		name := fmt.Sprintf("%dx%d", size.parts, size.bytes)
		b.Run(name, func(b *testing.B) {
			key := store.Key{Run: name}
			if err := s.Delete(b.Context(), key); err != nil {
				b.Fatal(err)
			}
			mustSave(b, s, key, 0, random(size.parts, size.bytes))
			work := serverWork(b, connString)
			var direct, through cost
			for b.Loop() {
				direct.add(b, inner, key, work)
				through.add(b, s, key, work)
			}
			if stats := s.Stats(); stats.Misses+stats.Corrupt+stats.Errors != 0 {
				b.Fatalf("not everything came from Redis: %+v", stats)
			}
			b.ReportMetric(float64(direct.time.Microseconds())/float64(b.N), "µs-postgres")
			b.ReportMetric(float64(through.time.Microseconds())/float64(b.N), "µs-redis")
			b.ReportMetric(float64(through.time)/float64(direct.time), "of-the-time")
			if direct.work > 0 {
				b.ReportMetric(float64(through.work)/float64(direct.work), "of-the-work")
			}
			b.ReportMetric(0, "ns/op") // the sum of both is meaningless
		})
	}
}

// BenchmarkSave reports the cost of a save without and with Redis, and the ratio.
func BenchmarkSave(b *testing.B) {
	inner := mustOpen(b, pgtest.New(b), postgres.Config{})
	s := mustNew(b, inner, mustClient(b, redistest.Start(b).URL()), Config{Timeout: waitTimeout})
	for _, size := range []int{64, 16 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("5x%d", size), func(b *testing.B) {
			delta := random(5, size)
			keys := []store.Key{{Account: "without", Run: fmt.Sprint(size)}, {Account: "with", Run: fmt.Sprint(size)}}
			for _, key := range keys {
				if err := s.Delete(b.Context(), key); err != nil {
					b.Fatal(err)
				}
			}
			var took [2]time.Duration
			for base := int64(0); b.Loop(); base++ {
				for i, to := range []store.Checkpoints{inner, s} {
					start := time.Now()
					mustSave(b, to, keys[i], base, delta)
					took[i] += time.Since(start)
				}
			}
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "µs-postgres")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "µs-both")
			b.ReportMetric(float64(took[1])/float64(took[0]), "of-the-time")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// cost is the cost of loads: elapsed time, and CPU time of PostgreSQL.
type cost struct{ time, work time.Duration }

func (c *cost) add(b *testing.B, from store.Checkpoints, key store.Key, work func() time.Duration) {
	b.Helper()
	before, start := work(), time.Now()
	if _, err := from.Load(b.Context(), key); err != nil {
		b.Fatal(err)
	}
	c.time += time.Since(start)
	c.work += work() - before
}

// serverWork returns a function that returns the CPU time of the PostgreSQL processes of a
// database; 0 if it is unknown.
func serverWork(b *testing.B, connString string) func() time.Duration {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), connString)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	rows, err := conn.Query(b.Context(),
		`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	return func() (sum time.Duration) {
		for _, pid := range pids {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
			if err != nil {
				return 0
			}
			var onProcessor int64
			fmt.Sscan(string(data), &onProcessor)
			sum += time.Duration(onProcessor)
		}
		return sum
	}
}

func random(parts, size int) (delta store.Delta) {
	source := rand.NewChaCha8([32]byte{1})
	for part := range parts {
		data := make([]byte, size)
		source.Read(data)
		delta.Put = append(delta.Put, store.Part{Name: fmt.Sprint("node/", part), Data: data})
	}
	return delta
}
