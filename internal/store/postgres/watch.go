package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/fermata-go/fermata/internal/broadcast"
	"github.com/fermata-go/fermata/internal/store"
)

// Hints are sent after the commit. A NOTIFY inside a transaction would serialize the commits of the
// whole server.
//
//	publish ──► watchers of this Store
//	  └────► pending ──goroutine──► NOTIFY ──► LISTEN ──goroutine──► watchers of the other Stores

const (
	// maxPending is the number of runs that can wait for the next NOTIFY; with more, the hint
	// becomes a zero key.
	maxPending = 4096

	// maxPayload is the size limit of a notification in PostgreSQL.
	maxPayload = 7999

	// notifyPause is the minimum time between two NOTIFY, because each is a transaction and
	// watchers poll about as often. A hint after a longer silence is sent at once.
	notifyPause = 10 * time.Millisecond

	// notifyTimeout limits one NOTIFY, and the last one when the Store is closed.
	notifyTimeout = 2 * time.Second

	// heartbeat is the silence after which the listener checks its connection.
	heartbeat = 30 * time.Second

	minBackoff, maxBackoff = 50 * time.Millisecond, 5 * time.Second
)

// notifySQL does not wait for the disk: the change itself is durable, and a hint may be lost.
const notifySQL = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, payload) FROM unnest($2::text[]) AS payload`

// watchers notifies watchers of this and other Stores. It never waits for one.
type watchers struct {
	origin  string // distinguishes this Store's notifications from those of others
	channel string

	hub broadcast.Hub[store.Key] // watchers of this Store

	mu        sync.Mutex
	closed    bool
	pending   map[store.Key]struct{} // not yet notified
	notifying bool                   // the goroutine runs
	listening bool                   // the goroutine runs

	more    chan struct{} // something is pending
	running sync.WaitGroup
	ctx     context.Context // ends when the Store is closed
	cancel  context.CancelFunc
}

func newWatchers(schema, origin string) *watchers {
	// Channels belong to the database, and their names have at most 63 bytes.
	sum := sha256.Sum256([]byte(schema))
	h := &watchers{
		origin: origin, channel: "fermata_" + hex.EncodeToString(sum[:16]),
		pending: make(map[store.Key]struct{}), more: make(chan struct{}, 1),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// close ends the goroutines and all watches.
func (h *watchers) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.hub.Close()
	h.cancel()
	h.running.Wait()
}

// Watch returns hints that a run may have changed; see [store.Events]. The channel is closed when
// ctx or the Store ends. The first Watch opens a separate connection, in addition to
// [Config.MaxConns], on which the Store listens until it is closed. Whenever that connection is
// reopened, the hint is a zero key.
func (s *Store) Watch(ctx context.Context) <-chan store.Key {
	h := s.watch
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listening && !h.closed {
		h.listening = true
		h.running.Go(s.listenLoop)
	}
	return h.hub.Subscribe(ctx)
}

// publish sends a hint for a changed run.
func (s *Store) publish(account, run string) {
	h := s.watch
	key := store.Key{Account: account, Run: run}
	h.hub.Publish(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.add(key)
	if !h.notifying {
		h.notifying = true
		h.running.Go(s.notifyLoop)
	}
}

// add adds a pending hint. The caller holds the lock.
func (h *watchers) add(key store.Key) {
	if len(h.pending) >= maxPending {
		key = store.Key{}
		clear(h.pending)
	}
	if _, any := h.pending[store.Key{}]; !any {
		h.pending[key] = struct{}{}
	}
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// notifyLoop sends pending hints in batches.
func (s *Store) notifyLoop() {
	h := s.watch
	wait := minBackoff
	for {
		select {
		case <-h.more:
		case <-h.ctx.Done():
		}
		last := h.ctx.Err() != nil
		err := s.notify(h.take())
		switch {
		case last: // otherwise they would be lost
			return
		case err == nil:
			wait = minBackoff
			sleep(h.ctx, notifyPause)
		default:
			h.mu.Lock()
			h.add(store.Key{}) // the runs are unknown now
			h.mu.Unlock()
			sleep(h.ctx, wait)
			wait = min(2*wait, maxBackoff)
		}
	}
}

// take returns the pending hints as payloads.
func (h *watchers) take() (payloads []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range h.pending {
		payloads = append(payloads, h.payload(key))
	}
	clear(h.pending)
	return payloads
}

func (s *Store) notify(payloads []string) error {
	if len(payloads) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, notifySQL, s.watch.channel, payloads)
	return err
}

// payload returns the origin and the run; without a run it means any run.
func (h *watchers) payload(key store.Key) string {
	if key != (store.Key{}) {
		if text := h.origin + " " + hex.EncodeToString([]byte(key.Account)) + " " + hex.EncodeToString([]byte(key.Run)); len(text) <= maxPayload {
			return text
		}
	}
	return h.origin
}

// receive passes the hint of another Store to the watchers. An unknown payload may come from a
// newer build and mean any run.
func (h *watchers) receive(payload string) {
	words := strings.Split(payload, " ")
	if words[0] == h.origin {
		return // they already have it
	}
	var key store.Key
	if len(words) == 3 {
		account, err := hex.DecodeString(words[1])
		run, runErr := hex.DecodeString(words[2])
		if err == nil && runErr == nil {
			key = store.Key{Account: string(account), Run: string(run)}
		}
	}
	h.hub.Publish(key)
}

// listenLoop listens, on one connection after the other.
func (s *Store) listenLoop() {
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		if s.listen(s.watch.ctx) {
			wait = minBackoff
		}
		if !sleep(s.watch.ctx, wait) {
			return
		}
	}
}

// listen forwards notifications until the connection is lost. It reports whether there was a
// connection.
func (s *Store) listen(ctx context.Context) (connected bool) {
	conn, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
			// an ended wait leaves the connection usable
			return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
		}
	})
	if err != nil {
		return false
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		defer cancel()
		conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+s.watch.channel); err != nil {
		return false
	}
	s.watch.hub.Publish(store.Key{}) // earlier changes are unknown
	for {
		waiting, cancel := context.WithTimeout(ctx, heartbeat)
		heard, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			s.watch.receive(heard.Payload)
		case ctx.Err() != nil || waiting.Err() == nil || !ping(ctx, conn):
			return true
		}
	}
}

// ping checks that the server responds.
func ping(ctx context.Context, conn *pgx.Conn) bool {
	asking, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	return conn.Ping(asking) == nil
}

// connect opens a connection outside the pool.
func (s *Store) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	if s.closed.Load() {
		return nil, errors.New("no connection")
	}
	config := s.pool.Config().ConnConfig
	change(config)
	return pgx.ConnectConfig(ctx, config)
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
