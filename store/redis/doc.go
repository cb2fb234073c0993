// Package redis adds a Redis cache to the checkpoints of another store, usually store/postgres. A
// load gets the bytes from Redis and only their digests from PostgreSQL. A lost, evicted or wrong
// entry in Redis costs time, never correctness.
//
//	base, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
//	...
//	client, err := redis.NewClient(os.Getenv("REDIS_URL"))
//	...
//	defer client.Close()
//	s, err := redis.New(base, client, redis.Config{TTL: 24 * time.Hour})
//
// s is a [store.Store] like its base store. Redis never sees runs, decisions, effects and events.
//
// # Correctness
//
//	Save ──1──▶ PostgreSQL      the version, and the SHA-256 of each part
//	  └────2──▶ Redis           the bytes, for a while
//
//	Load ──1──▶ PostgreSQL      which version, which digests?
//	  ├────2──▶ Redis           the bytes: used only if they have the digest
//	  └────3──▶ PostgreSQL      missing or wrong parts, which are then written to Redis
//
// A save is done when PostgreSQL has committed it. A value from Redis is used only if PostgreSQL
// has, at the time of the load, a part with that name and digest. So it does not matter whether
// Redis was emptied, restored from a backup, shared with another installation, or written to by a
// process that was stopped for an hour in the middle of a save. A part that PostgreSQL does not
// have does not exist.
//
// Redis may be unavailable. One call waits for it at most [Config.Timeout] in total. After three
// consecutive failures a circuit breaker opens for [Config.Pause], and every call goes directly to
// PostgreSQL. [Store.Stats] counts all of this.
//
// # What Redis holds
//
// One hash per run, which expires as a whole [Config.TTL] after the last write to it, independent
// of deadlines. Keys and fields are digests of the names of account, run and part: they contain no
// names, and those of two runs differ. The values are the saved bytes. The executor encrypts them
// before, so they reveal nothing. Only parts up to [Config.MaxPart] are cached.
//
// Delete and DeleteRun remove a run from PostgreSQL and then from Redis. If Redis is unavailable,
// or a concurrent load writes its parts back, the encrypted bytes stay in Redis until the TTL ends,
// and cannot be loaded.
//
// Redis needs neither a disk nor a replica for this. Set maxmemory, and maxmemory-policy to
// allkeys-lru. Redis 4 and newer, Valkey, a Cluster and a Ring work; it is tested on Redis 7.0. The
// client has its own log, on standard error by default (SetLogger of go-redis).
//
// # Benefits and costs
//
// The cache reduces the load on PostgreSQL but does not make a load faster by itself: the bytes
// travel as far as before, and they are hashed. Measured on one machine, a load through Redis
// relative to one from PostgreSQL (go test -bench Load):
//
//	state            time    CPU time of PostgreSQL
//	5 x 64 bytes     1.3     0.84
//	20 x 1 KiB       1.5     0.71
//	20 x 16 KiB      1.2     0.27
//	20 x 128 KiB     1.4     0.09
//	10 x 1 MiB       1.3     0.03
//
// A save takes 1.1 to 1.3 times as long. Use the cache for large states if PostgreSQL is the
// bottleneck: its processors, its network or the disk that it reads checkpoints from. Do not use it
// for small states.
package redis
