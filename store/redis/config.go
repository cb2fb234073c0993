package redis

import (
	"cmp"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config configures a Store. The zero value is suitable for most uses.
type Config struct {
	// TTL is how long Redis keeps a checkpoint after the last write to it. It only affects memory:
	// missing parts are read from the base store. Defaults to 24 hours.
	TTL time.Duration

	// Prefix begins every key. Defaults to "fermata:checkpoint:".
	Prefix string

	// Timeout is how long one call of the Store waits for Redis in total. The largest checkpoints
	// must be transferred in that time; otherwise they count as failures, and three in a row open
	// the breaker. Defaults to 250 milliseconds.
	Timeout time.Duration

	// MaxPart is the size in bytes of the largest part that is cached. Redis serves one client at a
	// time, and the others wait for a large part. Defaults to 1 MiB.
	MaxPart int

	// Pause is how long the breaker stays open after consecutive failures. Then one call probes
	// Redis. Defaults to 5 seconds.
	Pause time.Duration

	// OnStateChange, if not nil, is called with the reason when the breaker opens, and with nil
	// when it closes. It must not block.
	OnStateChange func(err error)
}

const (
	defaultTTL     = 24 * time.Hour
	defaultPrefix  = "fermata:checkpoint:"
	defaultTimeout = 250 * time.Millisecond
	defaultMaxPart = 1 << 20
	defaultPause   = 5 * time.Second

	dialTimeout = 5 * time.Second // same as that of the client
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

// NewClient returns a client for New, from redis://user:password@host:port/database, rediss://
// (with TLS) or unix://. It connects on first use. The caller closes it. It closes connections that
// announce an impossible reply; other clients would allocate memory for it and could crash the
// process.
func NewClient(rawURL string) (*goredis.Client, error) {
	options, err := goredis.ParseURL(rawURL)
	if err != nil {
		// The error of the library quotes the URL, and any piece of a malformed one may belong to
		// the password.
		return nil, fmt.Errorf("%w: the URL is not shown, because it may contain a password; expected redis://user:password@host:port/database "+
			"with special characters percent-encoded", ErrConfig)
	}
	options.ContextTimeoutEnabled = true
	// A retry is not worth the time: the base store has everything.
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	// Redis can redirect a client to another address. The client would connect there and send the
	// password.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	withReplyLimits(options)
	return goredis.NewClient(options), nil
}

// checkClient rejects a client that does not respect timeouts.
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
		return fmt.Errorf("%w: the client does not respect timeouts; set ContextTimeoutEnabled or use NewClient", ErrConfig)
	}
	return nil
}
