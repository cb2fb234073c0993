package redis

import (
	"context"
	"net"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/redistest"
	"github.com/fermata-go/fermata/internal/store"
)

// delayedWrites holds back writes to Redis, after the base store has them, until they are released.
type delayedWrites struct {
	holding chan struct{} // closed when a write is held back
	release chan struct{}
}

func newDelayedWrites() *delayedWrites {
	return &delayedWrites{holding: make(chan struct{}), release: make(chan struct{})}
}

func (l *delayedWrites) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *delayedWrites) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (l *delayedWrites) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if cmds[0].Name() == "multi" { // and not the greeting of a new connection
			close(l.holding)
			<-l.release
		}
		return next(ctx, cmds)
	}
}

// A process that was stopped between its save and its write to Redis overwrites new bytes with old
// ones.
func TestRace_LateSaveDoesNotServeOldBytes(t *testing.T) {
	server, inner, hold := redistest.Start(t), newBaseStore(), newDelayedWrites()
	slow := mustClient(t, server.URL())
	slow.AddHook(hold)
	stopped, other := mustNew(t, inner, slow, longTimeout), mustNew(t, inner, mustClient(t, server.URL()), longTimeout)

	saved := make(chan error)
	go func() {
		_, err := stopped.Save(t.Context(), demo, 0, parts{"a": "old", "b": "old", "gone": "old"}.delta())
		saved <- err
	}()
	<-hold.holding
	mustSave(t, other, demo, 1, parts{"a": "new"}.delta("gone"))
	close(hold.release)
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	want := parts{"a": "new", "b": "old"}.at(2)
	wantStored(t, other, demo, want)
	if wrong := other.Stats().Corrupt; wrong != 1 {
		t.Errorf("%d corrupt parts; the old bytes were not written last", wrong)
	}
	wantFromRedis(t, other, demo, want)
}

// The same happens with a load that writes back what it has read.
func TestRace_LateLoadDoesNotServeOldBytes(t *testing.T) {
	server, inner, hold := redistest.Start(t), newBaseStore(), newDelayedWrites()
	slow := mustClient(t, server.URL())
	slow.AddHook(hold)
	stopped, other := mustNew(t, inner, slow, longTimeout), mustNew(t, inner, mustClient(t, server.URL()), longTimeout)
	mustSave(t, inner, demo, 0, parts{"a": "old"}.delta())

	loaded := make(chan store.Checkpoint)
	go func() {
		checkpoint, err := stopped.Load(t.Context(), demo)
		if err != nil {
			t.Error(err)
		}
		loaded <- checkpoint
	}()
	<-hold.holding
	mustSave(t, other, demo, 1, parts{"a": "new"}.delta())
	close(hold.release)
	if checkpoint := <-loaded; checkpoint.Version != 1 || string(checkpoint.Parts["a"]) != "old" {
		t.Errorf("the stopped load returns %+v; want its original version", checkpoint)
	}
	wantStored(t, other, demo, parts{"a": "new"}.at(2))
	if wrong := other.Stats().Corrupt; wrong != 1 {
		t.Errorf("%d corrupt parts; the old bytes were not written last", wrong)
	}
	wantFromRedis(t, other, demo, parts{"a": "new"}.at(2))
}

// partlyCached returns a store with a run of which Redis has one part and not the other, so that a
// load needs Digests and LoadParts.
func partlyCached(t *testing.T, inner *baseStore) *Store {
	t.Helper()
	s := mustNew(t, inner, mustClient(t, redistest.Start(t).URL()), longTimeout)
	mustSave(t, s, demo, 0, parts{"in redis": "1"}.delta())
	mustSave(t, inner, demo, 1, parts{"not there": "1"}.delta())
	return s
}

func TestRace_SaveBetweenDigestsAndParts(t *testing.T) {
	inner := newBaseStore()
	s := partlyCached(t, inner)
	inner.beforeParts = func() {
		inner.beforeParts = nil
		mustSave(t, inner, demo, 2, parts{"not there": "2"}.delta())
	}
	want := parts{"in redis": "1", "not there": "2"}.at(3)
	wantStored(t, s, demo, want)
	if inner.loadCalls.Load() != 0 || inner.partCalls.Load() != 2 {
		t.Errorf("%d loads and %d fetches; want one restart", inner.loadCalls.Load(), inner.partCalls.Load())
	}
	wantFromRedis(t, s, demo, want)
}

// A run that is saved continuously must still be loadable.
func TestRace_SaveBetweenEveryDigestsAndParts(t *testing.T) {
	inner := newBaseStore()
	s := partlyCached(t, inner)
	version := int64(2)
	inner.beforeParts = func() {
		mustSave(t, inner, demo, version, parts{"not there": "more"}.delta())
		version++
	}
	wantStored(t, s, demo, parts{"in redis": "1", "not there": "more"}.at(2+maxAttempts))
	if fetches := inner.partCalls.Load(); fetches != maxAttempts {
		t.Errorf("%d fetches; want %d", fetches, maxAttempts)
	}
}

// A recreated run has the same versions with other bytes; a mix of both would be wrong.
func TestRace_RecreatedBetweenDigestsAndParts(t *testing.T) {
	for name, again := range map[string]parts{
		"with the same names": {"in redis": "again", "not there": "again"},
		"with other names":    {"other": "again"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newBaseStore()
			s := partlyCached(t, inner)
			inner.beforeParts = func() {
				inner.beforeParts = nil
				if err := inner.Delete(t.Context(), demo); err != nil {
					t.Error(err)
				}
				mustSave(t, inner, demo, 0, store.Delta{})
				mustSave(t, inner, demo, 1, again.delta())
			}
			wantStored(t, s, demo, again.at(2))
		})
	}
}

func TestRace_DeletedBetweenDigestsAndParts(t *testing.T) {
	inner := newBaseStore()
	s := partlyCached(t, inner)
	inner.beforeParts = func() { inner.Delete(t.Context(), demo) }
	if checkpoint, err := s.Load(t.Context(), demo); err != store.ErrNotFound {
		t.Errorf("Load = %+v, %v; want ErrNotFound", checkpoint, err)
	}
}
