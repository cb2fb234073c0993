package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
)

// cache is the Redis side. It returns no errors: missing data is read from the base store.
//
// Each checkpoint is one hash, so that it expires and is evicted as a whole. Its fields are the
// parts.
type cache struct {
	client  goredis.UniversalClient
	config  Config
	now     func() time.Time
	breaker breaker
	counters
}

// callBudget is the state of one call of a Store. All its requests to Redis share one timeout.
type callBudget struct {
	key       store.Key
	remaining time.Duration
	cleared   bool // a foreign value under the key was deleted
}

func (c *cache) newCall(key store.Key) *callBudget {
	return &callBudget{key: key, remaining: c.config.Timeout}
}

// unavailable reports that the breaker is open, and counts that.
func (c *cache) unavailable() bool {
	if !c.breaker.isOpen(c.now()) {
		return false
	}
	c.skipped.Add(1)
	return true
}

// get returns the parts that Redis has with the expected digests, and the names of the others. It
// reports whether Redis has responded.
func (c *cache) get(ctx context.Context, t *callBudget, index store.CheckpointDigests) (found map[string][]byte, missing []string, answered bool) {
	found = make(map[string][]byte, len(index.Digests))
	names, fields := make([]string, 0, len(index.Digests)), make([]string, 0, len(index.Digests))
	for name := range index.Digests {
		names, fields = append(names, name), append(fields, c.field(name))
	}
	if len(names) == 0 {
		return found, nil, true
	}
	var values []any
	answered = c.call(ctx, t, func(ctx context.Context) (err error) {
		values, err = c.client.HMGet(ctx, c.key(t.key), fields...).Result()
		return err
	})
	for i, name := range names {
		if data, ok := c.verified(values, i, index.Digests[name]); ok {
			found[name] = data
		} else {
			missing = append(missing, name)
		}
	}
	return found, missing, answered
}

// verified returns a value if it has the digest. Only this makes it safe to use: Redis may have
// lost, kept or mixed up anything.
func (c *cache) verified(values []any, i int, digest [sha256.Size]byte) ([]byte, bool) {
	if i >= len(values) {
		return nil, false
	}
	text, ok := values[i].(string)
	if !ok {
		c.misses.Add(1)
		return nil, false
	}
	data := []byte(text)
	if sha256.Sum256(data) != digest {
		c.corrupt.Add(1)
		return nil, false
	}
	c.hits.Add(1)
	return data, true
}

// put writes what a save has changed, in one transaction: a hash without an expiry would stay
// forever.
func (c *cache) put(ctx context.Context, t *callBudget, delta store.Delta) {
	var gone []string
	for _, name := range delta.Delete {
		gone = append(gone, c.field(name))
	}
	values := make([]any, 0, 2*len(delta.Put))
	for _, part := range delta.Put {
		if len(part.Data) > c.config.MaxPart {
			gone = append(gone, c.field(part.Name)) // an older value is useless
			continue
		}
		values = append(values, c.field(part.Name), part.Data)
	}
	if len(gone)+len(values) == 0 {
		return
	}
	key := c.key(t.key)
	c.call(ctx, t, func(ctx context.Context) error {
		_, err := c.client.TxPipelined(ctx, func(tx goredis.Pipeliner) error {
			if len(gone) > 0 {
				tx.HDel(ctx, key, gone...)
			}
			if len(values) > 0 {
				tx.HSet(ctx, key, values...)
			}
			tx.PExpire(ctx, key, c.config.TTL)
			return nil
		})
		return err
	})
}

// drop removes a checkpoint. If Redis is unavailable, the entry ends with its TTL.
func (c *cache) drop(ctx context.Context, t *callBudget) {
	c.call(ctx, t, func(ctx context.Context) error { return c.client.Unlink(ctx, c.key(t.key)).Err() })
}

// call calls Redis unless the breaker is open, and reports whether Redis has responded.
func (c *cache) call(ctx context.Context, t *callBudget, call func(context.Context) error) bool {
	if ctx.Err() != nil {
		return false
	}
	if !c.breaker.allow(c.now()) {
		c.skipped.Add(1)
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, t.remaining)
	defer cancel()
	start := time.Now()
	err := recovered(bounded, call)
	t.remaining -= time.Since(start)
	switch {
	case err == nil:
		if c.breaker.succeeded() {
			c.log(nil)
		}
		return true
	case goredis.HasErrorPrefix(err, "WRONGTYPE") && !t.cleared:
		// The key holds a foreign value. Other keys are not affected, but this one would never be
		// usable again.
		c.corrupt.Add(1)
		t.cleared = true
		c.drop(ctx, t)
		return true
	case isDone(ctx):
		return false // the caller gave up, which says nothing about Redis
	}
	c.errors.Add(1)
	if c.breaker.failed(c.now()) {
		c.log(reason(err))
	}
	return false
}

func (c *cache) log(err error) {
	if c.config.OnStateChange != nil {
		c.config.OnStateChange(err)
	}
}

// reason returns why Redis failed, for a log. Of a Redis error it returns only the code, because
// the text may repeat what was sent.
func reason(err error) error {
	if said, ok := errors.AsType[goredis.Error](err); ok {
		code, _, _ := strings.Cut(said.Error(), " ")
		return errors.New("it says " + code)
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.EOF) {
		return err
	}
	return errors.New("malformed reply")
}

// recovered runs a call of Redis and converts panics: the client panics on some malformed replies.
func recovered(ctx context.Context, call func(context.Context) error) (err error) {
	defer recovery.Recover(&err)
	return call(ctx)
}

// isDone reports whether a context has ended. The connection may notice the deadline slightly
// earlier than the context.
func isDone(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// key returns a Redis key of constant length that is unique for each account and run.
func (c *cache) key(key store.Key) string {
	account, run := sha256.Sum256([]byte(key.Account)), sha256.Sum256([]byte(key.Run))
	both := sha256.Sum256(append(account[:], run[:]...))
	return c.config.Prefix + hex.EncodeToString(both[:])
}

func (c *cache) field(name string) string {
	digest := sha256.Sum256([]byte(name))
	return string(digest[:])
}
