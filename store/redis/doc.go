// Package redis puts Redis in front of the checkpoints of another store, which is usually store/postgres. Whoever loads a checkpoint then
// has its bytes from Redis, and PostgreSQL only says which bytes they have to be. A lost, evicted or lying Redis costs time, never
// state.
//
//	behind, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
//	...
//	client, err := redis.NewClient(os.Getenv("REDIS_URL"))
//	...
//	defer client.Close()
//	s, err := redis.New(behind, client, redis.Config{TTL: 24 * time.Hour})
//
// s is a [store.Store] like the one behind it. Runs, decisions, effects and events are that one's alone; Redis never sees them.
//
// # What is true
//
//	Save ──1──▶ PostgreSQL      the version, and the SHA-256 of each part
//	  └────2──▶ Redis           the bytes, for a while
//
//	Load ──1──▶ PostgreSQL      which version, which digests?
//	  ├────2──▶ Redis           the bytes: taken if they have the digest, and not otherwise
//	  └────3──▶ PostgreSQL      what is missing or wrong, which is then put into Redis again
//
// A save is done when PostgreSQL has it. What Redis says is only ever used if PostgreSQL has, at the moment of the load, a part of that name
// with that digest; so it does not matter whether Redis was emptied, restored from a backup, shared with another
// installation, or written to by a process that was stopped for an hour between the two halves of its save. A part that PostgreSQL
// does not know of does not exist, whatever Redis has.
//
// Redis may be away. One call waits for it no longer than [Config.Timeout], all in all; after three failures in a row it is left alone for
// [Config.Pause], and every call goes straight to PostgreSQL, as if there were no Redis. [Store.Stats] counts all of it.
//
// # What Redis holds
//
// One hash per run, which expires as a whole [Config.TTL] after the last write to it. The deadline of a question has nothing to do
// with that. Keys and fields are digests of the names of account, run and part: they have no names in them, and those of two runs are
// never the same. The values are what was saved; the executor seals that before, so that who reads Redis reads nothing. Only
// parts up to [Config.MaxPart] are there.
//
// Delete and Forget remove a run from PostgreSQL and then from Redis. If Redis is away then, or a load puts back at that moment what it has
// just read, the sealed bytes stay in Redis until the TTL is over, and nobody can load them.
//
// Redis needs neither a disk nor a replica for this. Set maxmemory, and maxmemory-policy to allkeys-lru. Redis 4 and newer will do, as will
// Valkey, a Cluster and a Ring; it is tested on Redis 7.0. The client logs on its own, to standard error unless told otherwise
// (SetLogger of go-redis).
//
// # What it buys, and what it costs
//
// It takes work off PostgreSQL, and does not make a load faster by itself: the bytes travel as far as before, and they are hashed. Measured
// with everything on one machine, a load through Redis against one from PostgreSQL (go test -bench Load):
//
//	state            time    PostgreSQL's work
//	5 x 64 bytes     1.3     0.84
//	20 x 1 KiB       1.5     0.71
//	20 x 16 KiB      1.2     0.27
//	20 x 128 KiB     1.4     0.09
//	10 x 1 MiB       1.3     0.03
//
// A save takes 1.1 to 1.3 times as long. So it is for installations with large states whose PostgreSQL is the bottleneck: its processors, its
// network or a disk that it has to read checkpoints from. For small states leave it out.
package redis
