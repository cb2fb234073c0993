package calendarsim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/provider"
)

// poll is the polling interval of executors. A timer fires up to this much later, and twice that if
// a notice must be sent too.
const poll = 20 * time.Minute

// storage opens the store of a simulation, once for each executor.
type storage interface {
	open() (store.Store, func() error, error)
}

type memoryStore struct{ runs *memory.Store }

func (m memoryStore) open() (store.Store, func() error, error) {
	return m.runs, func() error { return nil }, nil
}

type fileStore struct{ path string }

func (f fileStore) open() (store.Store, func() error, error) {
	s, err := sqlite.Open(f.path)
	if err != nil {
		return nil, nil, err
	}
	return unwatchedStore{s}, s.Close, nil
}

func fileStorage(t *testing.T) storage {
	return fileStore{filepath.Join(t.TempDir(), "calendarsim.db")}
}

func memoryStorage(*testing.T) storage { return memoryStore{memory.NewStore(nil)} }

// unwatchedStore is a store whose change notifications are lost, as is allowed. SQLite polls for
// them ten times a second, which is slow over months.
type unwatchedStore struct{ *sqlite.Store }

// Watch never reports a change.
func (unwatchedStore) Watch(ctx context.Context) <-chan store.Key {
	silent := make(chan store.Key)
	context.AfterFunc(ctx, func() { close(silent) })
	return silent
}

// instance is a process with an executor.
type instance struct {
	*executor.Executor
	calls sync.WaitGroup // calls in progress
	shut  func() error
}

// service is all running executors.
type service struct {
	t      *testing.T
	kept   storage
	config executor.Config
	mu     sync.Mutex
	live   []*instance
	since  time.Time // when the last one stopped, while all are down
	downs  []span    // periods in which none was up
	kills  []time.Time
	events int
}

func newService(t *testing.T, k storage, p provider.Provider, key executor.Sealer, desk executor.DeskConfig) *service {
	return &service{t: t, kept: k, config: executor.Config{
		Providers: []provider.Provider{p}, Sealer: key, Workers: 1, Poll: poll, Wait: time.Minute, RequestTimeout: 30 * 24 * time.Hour, Desk: desk,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}}
}

// start starts one more executor.
func (s *service) start() {
	config := s.config
	opened, shut, err := s.kept.open()
	if err != nil {
		s.t.Error(err)
		return
	}
	config.Store = storetest.Audited(s.t, opened)
	e, err := executor.New(config)
	if err != nil {
		s.t.Error(err)
		return
	}
	e.StartWorkers()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) == 0 && !s.since.IsZero() {
		s.downs = append(s.downs, span{s.since, time.Now()})
	}
	s.live = append(s.live, &instance{Executor: e, shut: shut})
	s.events++
}

// stop stops the oldest executor, gracefully or at once.
func (s *service) stop(kill bool) {
	s.mu.Lock()
	if len(s.live) == 0 {
		s.mu.Unlock()
		return
	}
	old := s.live[0]
	s.live = s.live[1:]
	if len(s.live) == 0 {
		s.since = time.Now()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if kill {
		s.kills = append(s.kills, time.Now())
		cancel()
	}
	s.mu.Unlock()
	err := old.Stop(ctx)
	old.calls.Wait()
	if err := errors.Join(err, old.shut()); err != nil {
		s.t.Error(err)
	}
}

// take returns a running executor for a call, or nil.
func (s *service) take(rng *rand.Rand) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) == 0 {
		return nil
	}
	e := s.live[rng.IntN(len(s.live))]
	e.calls.Add(1)
	return e
}

// operate restarts, kills and adds executors until the end, and sometimes lets all be down for
// hours.
func (s *service) operate(rng *rand.Rand, end time.Time) {
	for {
		time.Sleep(time.Duration(2+rng.IntN(40))*time.Hour + time.Duration(rng.IntN(3600))*time.Second)
		if time.Now().After(end) {
			return
		}
		s.mu.Lock()
		running := len(s.live)
		s.mu.Unlock()
		switch what := rng.IntN(10); {
		case what < 1: // a long outage
			for range running {
				s.stop(rng.IntN(2) == 0)
			}
			time.Sleep(time.Duration(2+rng.IntN(7))*time.Hour + time.Duration(rng.IntN(3600))*time.Second)
			s.start()
		case what < 3: // a short one
			for range running {
				s.stop(false)
			}
			time.Sleep(time.Duration(rng.IntN(1800)) * time.Second)
			s.start()
		case what < 6 && running > 1:
			s.stop(what == 5)
		case what < 8 && running < 3:
			s.start()
		default: // a deployment
			s.start()
			s.stop(what == 9)
		}
	}
}

// late returns the latest time at which something that is due at t happens, given polling and
// downtime.
func (s *service) late(t time.Time, looks int) time.Time {
	last := t.Add(time.Duration(looks)*poll + 2*time.Minute)
	for _, d := range s.downs {
		if !d.from.After(last) && d.to.After(t) {
			last = d.to.Add(time.Duration(looks)*poll + 2*time.Minute)
		}
	}
	return last
}

// outages returns the outages after the first n in which deadlines are moved.
func (s *service) outages(n int) []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.downs[n:])
}

// isOutage reports whether a period is long enough. The short ones are clearly shorter and the long
// ones clearly longer.
func (d span) isOutage() bool { return d.to.Sub(d.from) > 4*poll }

// wasDown reports whether no executor was up for a part of a period.
func (s *service) wasDown(from, to time.Time) bool {
	for _, d := range s.downs {
		if d.from.Before(to) && d.to.After(from) {
			return true
		}
	}
	return false
}
