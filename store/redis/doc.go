// Package redis stores checkpoints in Redis, for programs that run graphs or agents without a
// server and already operate a Redis.
//
//	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:6379"})
//	defer client.Close()
//	checkpoints, err := redis.New(client, redis.Config{})
//	...
//	_, err = flow.Run(ctx, state, graph.WithStore(checkpoints), graph.WithRun("order-1"))
//
// Any process with the same Redis can resume the run. Of any number of processes that resume it at
// the same time, one wins.
//
// # What Redis holds
//
// One hash per run, under the key
//
//	fermata:checkpoint:<length of the account>:<account>:<run>
//
// Each part of the checkpoint is a field with the part's name. The field with the empty name holds
// the version. A save is one Lua script, so it happens as a whole or not at all. The values are not
// encrypted.
//
// A hash has no expiry: a run may wait for a person for any time. [Checkpoints.Delete] removes it.
//
// # Durability
//
// A save is as durable as the configuration of Redis makes it. So that an acknowledged save
// survives a crash of the server, set
//
//	appendonly yes
//	appendfsync always
//	maxmemory-policy noeviction
//
// A failover to a replica can lose the last saves, because replication is asynchronous. A run whose
// last save was lost repeats the work since the save before. Use store/sqlite or store/postgres for
// effects that must not happen twice.
//
// Redis 4 and newer, Valkey, a Cluster and a Ring work.
package redis
