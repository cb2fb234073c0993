package slackfake

import (
	"math"
	"time"
)

// Rate is a rate limit: a number of calls per period, all of them at once if they come together.
type Rate struct {
	Calls int
	Per   time.Duration
}

// DefaultRates are Slack's published limits: per method and workspace, and for posts per channel.
// Slack tolerates short bursts of posts in a channel; the fake allows three.
func DefaultRates() map[string]Rate {
	tier1, tier2, tier3, tier4 := Rate{1, time.Minute}, Rate{20, time.Minute}, Rate{50, time.Minute}, Rate{100, time.Minute}
	tier1.Calls = 10 // a program that opens several sockets at once is not limited
	return map[string]Rate{
		channelRate: {3, 3 * time.Second}, "chat.postMessage": {300, time.Minute}, "chat.update": tier3, "chat.postEphemeral": tier4,
		"views.open": tier4, "conversations.info": tier3, "conversations.history": tier3, "conversations.members": tier4,
		"conversations.open": tier3, "conversations.list": tier2, "users.info": tier4, "usergroups.users.list": tier2, "apps.connections.open": tier1,
		"auth.test": {300, time.Minute},
	}
}

// channelRate is the name of the limit of posts per channel.
const channelRate = "channel"

// bucket is a token bucket.
type bucket struct {
	tokens float64
	at     time.Time
}

// rate returns the rate limit with a name.
func (s *Slack) rate(name string) Rate {
	if r, ok := s.config.Rates[name]; ok {
		return r
	}
	return DefaultRates()[name]
}

// limited takes a token from the bucket of a key. Without a token it returns the seconds to wait.
func (s *Slack) limited(name, key string) (retryAfter int) {
	r := s.rate(name)
	if r.Calls == 0 {
		return 0
	}
	now := s.config.Now()
	b := s.buckets[name+" "+key]
	if b == nil {
		b = &bucket{tokens: float64(r.Calls), at: now}
		s.buckets[name+" "+key] = b
	}
	perSecond := float64(r.Calls) / r.Per.Seconds()
	b.tokens = min(float64(r.Calls), b.tokens+perSecond*now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return max(1, int(math.Ceil((1-b.tokens)/perSecond)))
	}
	b.tokens--
	return 0
}

// Failure is how the fake fails one call.
type Failure struct {
	// Code is the error code, such as fatal_error.
	Code string
	// Status is the HTTP status; 200 by default, as Slack answers errors.
	Status int
	// RetryAfter makes it a rate limit.
	RetryAfter time.Duration
	// LoseResponse performs the call and then closes the connection without a response.
	LoseResponse bool
}

// FailNext fails the next calls of a method, one for each failure.
func (s *Slack) FailNext(method string, failures ...Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[method] = append(s.failures[method], failures...)
}
