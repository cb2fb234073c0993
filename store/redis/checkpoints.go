package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Checkpoints = (*Checkpoints)(nil)

// ErrConfig is returned by New for an invalid configuration.
var ErrConfig = errors.New("redis: invalid configuration")

// Config configures Checkpoints. The zero value is suitable for most uses.
type Config struct {
	// Prefix begins every key. Defaults to "fermata:checkpoint:".
	Prefix string
}

// Checkpoints stores checkpoints in Redis. Use New to create one. All methods are safe for
// concurrent use. The errors of Redis that they return contain only its error code, because its
// texts may repeat what was sent.
//
// It needs no Close: the caller closes the client.
type Checkpoints struct {
	client goredis.UniversalClient
	prefix string
}

// New returns a store that uses the client. It does not connect. The client may retry: a save that
// is sent twice is applied once.
func New(client goredis.UniversalClient, config Config) (*Checkpoints, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: no client", ErrConfig)
	}
	if config.Prefix == "" {
		config.Prefix = "fermata:checkpoint:"
	}
	return &Checkpoints{client: client, prefix: config.Prefix}, nil
}

// versionField is the field that holds the version, a space, and a random text that identifies the
// save. A part cannot have this name.
const versionField = ""

// Load returns the newest checkpoint, or [store.ErrNotFound].
func (c *Checkpoints) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return store.Checkpoint{}, err
	}
	fields, err := c.client.HGetAll(ctx, c.key(key)).Result()
	if err != nil {
		return store.Checkpoint{}, failure("load", err)
	}
	if len(fields) == 0 {
		return store.Checkpoint{}, store.ErrNotFound
	}
	number, _, _ := strings.Cut(fields[versionField], " ")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return store.Checkpoint{}, errors.New("redis: load: the value under the key is not a checkpoint")
	}
	delete(fields, versionField)
	parts := make(map[string][]byte, len(fields))
	for name, data := range fields {
		parts[name] = []byte(data)
	}
	return store.Checkpoint{Version: version, Parts: parts}, nil
}

// saveScript replaces version ARGV[1] with ARGV[2], deletes the next ARGV[3] fields, and sets the
// others. It returns 1, or 0 if ARGV[1] is not the stored version. If the client sends it again
// because the reply was lost, the stored version is already ARGV[2], with its random text.
var saveScript = goredis.NewScript(`
local saved = redis.call('HGET', KEYS[1], '') or '0 '
if saved == ARGV[2] then
  return 1
end
if string.match(saved, '^%d+') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], '', ARGV[2])
local last = 3 + tonumber(ARGV[3])
for i = 4, last do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
for i = last + 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
return 1`)

// Save applies the delta if base is the stored version; see [store.Checkpoints]. See the package
// documentation for its durability.
func (c *Checkpoints) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	unnamed := func(part store.Part) bool { return part.Name == "" }
	if key.Run == "" || slices.Contains(delta.Delete, "") || slices.ContainsFunc(delta.Put, unnamed) {
		return 0, store.ErrInvalid
	}
	args := make([]any, 0, 3+len(delta.Delete)+2*len(delta.Put))
	args = append(args, base, fmt.Sprint(base+1, " ", rand.Text()), len(delta.Delete))
	for _, name := range delta.Delete {
		args = append(args, name)
	}
	for _, part := range delta.Put {
		args = append(args, part.Name, part.Data)
	}
	saved, err := saveScript.Run(ctx, c.client, []string{c.key(key)}, args...).Bool()
	if err != nil {
		return 0, failure("save", err)
	}
	if !saved {
		return 0, store.ErrStale
	}
	return base + 1, nil
}

// Delete removes the checkpoint. Deleting one that does not exist is not an error.
func (c *Checkpoints) Delete(ctx context.Context, key store.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.client.Unlink(ctx, c.key(key)).Err(); err != nil {
		return failure("delete", err)
	}
	return nil
}

// key returns the Redis key of a run. The length of the account makes it unique.
func (c *Checkpoints) key(key store.Key) string {
	return fmt.Sprint(c.prefix, len(key.Account), ":", key.Account, ":", key.Run)
}

// failure returns an error without what Redis may have repeated from the command.
func failure(operation string, err error) error {
	if reply, ok := errors.AsType[goredis.Error](err); ok {
		code, _, _ := strings.Cut(reply.Error(), " ")
		return fmt.Errorf("redis: %s: Redis replied %s", operation, code)
	}
	return fmt.Errorf("redis: %s: %w", operation, err)
}
