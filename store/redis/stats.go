package redis

import "sync/atomic"

// Stats counts the use of Redis since the Store was created.
type Stats struct {
	// Hits are parts that came from Redis. Misses are parts that it did not have. Corrupt are parts
	// with other bytes than were saved, including outdated ones.
	Hits, Misses, Corrupt int64
	// Errors are calls of Redis that failed or timed out. Skipped are calls that were not made
	// because of an open breaker.
	Errors, Skipped int64
	// Unavailable reports that the breaker is open.
	Unavailable bool
}

type counters struct {
	hits, misses, corrupt, errors, skipped atomic.Int64
}

func (c *counters) stats() Stats {
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Corrupt: c.corrupt.Load(),
		Errors: c.errors.Load(), Skipped: c.skipped.Load(),
	}
}
