package redis

import (
	"cmp"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says how a Store uses Redis. The zero value is good for most.
type Config struct {
	// TTL is how long Redis keeps a checkpoint after the last time that something of it was written there. Nothing depends on it but
	// memory: what is gone is read from the store behind. Default: 24 hours.
	TTL time.Duration

	// Prefix begins every key. Default: "fermata:checkpoint:".
	Prefix string

	// Timeout is how long one call of the Store waits for Redis, all in all. The largest checkpoints have to get through in that time:
	// those that do not are failures of Redis, and three in a row start a pause. Default: 250 milliseconds.
	Timeout time.Duration

	// MaxPart is the size, in bytes, of the largest part that Redis gets: it serves one client at a time, and the others wait for a
	// large one. Default: 1 MiB.
	MaxPart int

	// Pause is how long Redis is left alone after it has failed some times in a row. Then one call tries it again. Default: 5 seconds.
	Pause time.Duration

	// Tell, if given, is called when Redis is left alone because it failed, with the reason, and with nil once it answers again: nobody else would
	// notice. It must not wait for anything.
	OnStateChange func(err error)
}

const (
	defaultTTL     = 24 * time.Hour
	defaultPrefix  = "fermata:checkpoint:"
	defaultTimeout = 250 * time.Millisecond
	defaultMaxPart = 1 << 20
	defaultPause   = 5 * time.Second

	dialTimeout = 5 * time.Second // as that of the client
)

func (c Config) withDefaults() Config {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxPart == 0 {
		c.MaxPart = defaultMaxPart
	}
	if c.Pause == 0 {
		c.Pause = defaultPause
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.TTL < time.Millisecond:
		return fmt.Errorf("%w: a TTL of %s", ErrConfig, c.TTL)
	case c.Timeout < time.Millisecond:
		return fmt.Errorf("%w: a timeout of %s", ErrConfig, c.Timeout)
	case c.MaxPart < 0:
		return fmt.Errorf("%w: parts of at most %d bytes", ErrConfig, c.MaxPart)
	case c.Pause < 0:
		return fmt.Errorf("%w: a pause of %s", ErrConfig, c.Pause)
	}
	return nil
}

// NewClient returns a client that suits New, from redis://user:password@host:port/database, rediss:// (with TLS) or
// unix://. It connects when it is first used. Whoever makes it closes it. It hangs up on whatever announces an answer that no Redis gives: other clients
// make room for it, and end the process if there is not so much.
func NewClient(rawURL string) (*goredis.Client, error) {
	options, err := goredis.ParseURL(rawURL)
	if err != nil {
		// The error quotes pieces of the URL, and any piece of a malformed one may belong to the password.
		return nil, fmt.Errorf("%w: the URL is not shown, since it may hold a password; want redis://user:password@host:port/database "+
			"with special characters percent-encoded", ErrConfig)
	}
	options.ContextTimeoutEnabled = true
	// Trying again is not worth the time: the store behind has everything.
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	// Redis may say where to go on, and the client would go there and tell the password, whoever is there.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	withReplyLimits(options)
	return goredis.NewClient(options), nil
}

// checkClient refuses a client that would not end when it is told to.
func checkClient(client goredis.UniversalClient) error {
	obeys := true
	switch c := client.(type) {
	case nil:
		return fmt.Errorf("%w: no client", ErrConfig)
	case *goredis.Client:
		obeys = c.Options().ContextTimeoutEnabled
	case *goredis.ClusterClient:
		obeys = c.Options().ContextTimeoutEnabled
	case *goredis.Ring:
		obeys = c.Options().ContextTimeoutEnabled
	}
	if !obeys {
		return fmt.Errorf("%w: the client does not obey timeouts; set its option ContextTimeoutEnabled, or use NewClient", ErrConfig)
	}
	return nil
}
