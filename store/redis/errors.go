package redis

import "errors"

// What New and NewClient can find wrong. Whatever goes wrong later is counted in [Stats] and costs time only.
var (
	// ErrConfig says that New or NewClient was given something that cannot work.
	ErrConfig = errors.New("redis: bad configuration")

	// ErrNoDigests says that the store behind Redis, or what its Fenced returns, is no [store.DigestCheckpoints]: there is nothing to check
	// the bytes of Redis against. Use store/postgres.
	ErrNoDigests = errors.New("redis: the store cannot say what its checkpoints hold")
)
