package redis

import "sync/atomic"

// Stats counts what Redis was good for, since the Store was made.
type Stats struct {
	// Hits are parts that came from Redis, Misses parts that it did not have, and Wrong those that it had other bytes for than were
	// saved. What is late or older counts as wrong, too.
	Hits, Misses, Corrupt int64
	// Errors are calls of Redis that failed or took too long. Skipped are those that were not made because of that.
	Errors, Skipped int64
	// Away says that Redis is left alone right now.
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
