package redis

import "errors"

// Errors of New and NewClient. Later errors are counted in [Stats] and only cost time.
var (
	// ErrConfig is returned by New and NewClient for an invalid configuration.
	ErrConfig = errors.New("redis: invalid configuration")

	// ErrNoDigests is returned if the base store, or what its Fenced returns, does not implement
	// [store.DigestCheckpoints], so the bytes from Redis cannot be verified. Use store/postgres.
	ErrNoDigests = errors.New("redis: the store does not provide digests of checkpoints")
)
