package authn

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/time/rate"
)

// The parameters of argon2id, as OWASP recommends: memory in KiB, passes and threads. They are not
// stored with the hash: another set needs another version byte.
const (
	passwordVersion = 1
	passwordMemory  = 19 << 10
	passwordPasses  = 2
	saltLength      = 16
	passwordHash    = 32

	minPassword, maxPassword = 12, 256
)

// hashPassword returns a version byte, a random salt and the argon2id hash of a password.
func hashPassword(password string) []byte {
	hash := make([]byte, 1+saltLength)
	hash[0] = passwordVersion
	rand.Read(hash[1:])
	return append(hash, derivePassword(password, hash[1:])...)
}

func derivePassword(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, passwordPasses, passwordMemory, 1, passwordHash)
}

// isPassword reports whether a hash is that of the password. It takes as long for an empty hash as
// for a wrong password, so that the time does not tell whether a member exists.
func isPassword(hash []byte, password string) bool {
	known := isPasswordHash(hash)
	if !known {
		hash = make([]byte, 1+saltLength+passwordHash)
	}
	same := subtle.ConstantTimeCompare(hash[1+saltLength:], derivePassword(password, hash[1:1+saltLength])) == 1
	return same && known
}

// noPassword is stored for a member without a password.
var noPassword = []byte{0}

func isPasswordHash(hash []byte) bool {
	return len(hash) == 1+saltLength+passwordHash && hash[0] == passwordVersion
}

// guessLimiter bounds attempts to sign in with a password: per name, whether or not there is a
// member of that name, and at the same time, because each attempt needs memory.
type guessLimiter struct {
	mu    sync.Mutex
	names map[string]*rate.Limiter
	slots chan struct{}
}

const (
	// A name has guessBurst attempts, and another one each guessInterval.
	guessBurst    = 5
	guessInterval = time.Minute
	// maxGuessNames is how many names are remembered before all are forgotten.
	maxGuessNames = 10000
)

func newGuessLimiter() *guessLimiter {
	return &guessLimiter{names: make(map[string]*rate.Limiter), slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// allow reports whether there may be another attempt for a name.
func (g *guessLimiter) allow(name string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	name = strings.ToLower(name)
	if g.names[name] == nil {
		if len(g.names) >= maxGuessNames {
			clear(g.names)
		}
		g.names[name] = rate.NewLimiter(rate.Every(guessInterval), guessBurst)
	}
	return g.names[name].AllowN(now, 1)
}

// acquire waits until a password may be hashed. It reports false if ctx ends.
func (g *guessLimiter) acquire(ctx context.Context) bool {
	select {
	case g.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *guessLimiter) release() { <-g.slots }
