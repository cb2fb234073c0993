package slack

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-go/fermata/channel"
)

// rate is a number of calls per period. All of them may come at once.
type rate struct {
	calls float64
	per   time.Duration
}

// methodRates are Slack's limits per workspace and method, with a margin for other processes.
var methodRates = map[string]rate{
	"auth.test": {100, time.Minute}, "chat.postMessage": {200, time.Minute}, "chat.update": {45, time.Minute}, "chat.postEphemeral": {90, time.Minute},
	"views.open": {90, time.Minute}, "conversations.info": {45, time.Minute}, "conversations.history": {45, time.Minute},
	"conversations.list": {18, time.Minute}, "conversations.members": {90, time.Minute}, "conversations.open": {45, time.Minute}, "users.info": {90, time.Minute}, "usergroups.users.list": {18, time.Minute},
}

// channelRate is Slack's limit of posts per channel: one per second, with a short burst.
var channelRate = rate{2, 2 * time.Second}

// maxWait is how long a call waits for its turn. A longer wait is an error with the time of the
// next attempt, so that other deliveries are not delayed.
const maxWait = 2 * time.Second

// limiter keeps calls below the rate limits, per method and for posts per channel.
type limiter struct {
	now func() time.Time
	// simulated says that now is not the clock of the host, so that no call waits for it
	simulated bool
	mu        sync.Mutex
	// buckets have the tokens by method, and by method and channel
	buckets map[string]*tokens
}

type tokens struct {
	left    float64
	at      time.Time
	blocked time.Time // by a response with Retry-After
	// promised is the time of the last token that was promised to a call that does not wait
	promised time.Time
}

func newLimiter(now func() time.Time, simulated bool) *limiter {
	return &limiter{now: now, simulated: simulated, buckets: make(map[string]*tokens)}
}

// wait waits until a method may be called for a channel.
func (l *limiter) wait(ctx context.Context, method, to string) error {
	for {
		pause := l.take(method, to)
		if pause <= 0 {
			return nil
		}
		if pause > maxWait || l.simulated {
			return &channel.Error{Code: "ratelimited", RetryAfter: l.promise(method, to, pause)}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return &channel.Error{Code: "ratelimited", RetryAfter: pause, Err: ctx.Err()}
		}
	}
}

// promise returns the time until the next token that was not promised to another call, so that
// calls that come again come one after the other.
func (l *limiter) promise(method, to string, pause time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	last := now.Add(pause)
	for key, r := range map[string]rate{method: methodRates[method], method + " " + to: channelRate} {
		b := l.buckets[key]
		if b == nil || r.calls == 0 || key != method && to == "" {
			continue
		}
		b.promised = b.promised.Add(time.Duration(float64(r.per) / r.calls))
		if b.promised.Before(now.Add(pause)) {
			b.promised = now.Add(pause)
		}
		if b.promised.After(last) {
			last = b.promised
		}
	}
	return last.Sub(now)
}

// take takes a token, or returns the time until there is one.
func (l *limiter) take(method, to string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	all := []*tokens{}
	if r, ok := methodRates[method]; ok {
		b := l.bucket(method, r, now)
		if pause := b.pause(r, now); pause > 0 {
			return pause
		}
		all = append(all, b)
	}
	if to != "" {
		b := l.bucket(method+" "+to, channelRate, now)
		if pause := b.pause(channelRate, now); pause > 0 {
			return pause
		}
		all = append(all, b)
	}
	for _, b := range all {
		b.left--
	}
	return 0
}

// bucket returns a bucket with the tokens of now.
func (l *limiter) bucket(key string, r rate, now time.Time) *tokens {
	b := l.buckets[key]
	if b == nil {
		b = &tokens{left: r.calls, at: now}
		l.buckets[key] = b
	}
	b.left = min(r.calls, b.left+r.calls*float64(now.Sub(b.at))/float64(r.per))
	b.at = now
	return b
}

// pause returns the time until there is a token.
func (b *tokens) pause(r rate, now time.Time) time.Duration {
	if now.Before(b.blocked) {
		return b.blocked.Sub(now)
	}
	if b.left >= 1 {
		return 0
	}
	return time.Duration((1-b.left)*float64(r.per)/r.calls) + time.Millisecond
}

// block stops calls for the time that Slack demands. Slack does not say which limit it was: for a
// post it is that of the channel.
func (l *limiter) block(method, to string, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, r := method, methodRates[method]
	if to != "" {
		key, r = method+" "+to, channelRate
	}
	l.bucket(key, r, l.now()).blocked = l.now().Add(retryAfter)
}
