package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

func generation(version int64) store.Delta {
	text := strconv.FormatInt(version, 10)
	var delta store.Delta
	for i := range 5 {
		delta.Put = append(delta.Put, store.Part{Name: fmt.Sprint("part ", i), Data: []byte(text)})
	}
	// One part per version is added and removed, so that a partial save is detected.
	delta.Put = append(delta.Put, store.Part{Name: "only " + text, Data: []byte(text)})
	delta.Delete = []string{"only " + strconv.FormatInt(version-1, 10)}
	return delta
}

// wantConsistent checks that all parts of a checkpoint are of its version.
func wantConsistent(t *testing.T, checkpoint store.Checkpoint) {
	t.Helper()
	want := strconv.FormatInt(checkpoint.Version, 10)
	for name, data := range checkpoint.Parts {
		if string(data) != want {
			t.Errorf("%q is of version %s, the checkpoint of %s", name, data, want)
		}
	}
	if len(checkpoint.Parts) != 6 {
		t.Errorf("%d parts; want 6", len(checkpoint.Parts))
	}
}

// saveUntil saves one version after the other until one fails, and returns the last acknowledged
// one.
func saveUntil(s *Store, key store.Key, version int64, acknowledged func()) (int64, error) {
	for {
		next, err := s.Save(context.Background(), key, version, generation(version+1))
		if err != nil {
			return version, err
		}
		version = next
		acknowledged()
	}
}

func TestCrash_KilledServerKeepsAcknowledgedSaves(t *testing.T) {
	const runs, rounds, perRound = 4, 2, 60
	t.Parallel() // it has its own server
	cluster := pgtest.Start(t)
	s := mustOpen(t, cluster.Database(t), Config{})
	var versions [runs]int64
	key := func(i int) store.Key { return store.Key{Account: "acme", Run: fmt.Sprint(i)} }
	for i := range versions {
		version, err := s.Save(t.Context(), key(i), 0, generation(1))
		if err != nil {
			t.Fatal(err)
		}
		versions[i] = version
	}
	for round := range rounds {
		var saving sync.WaitGroup
		acknowledged := make(chan struct{})
		for i := range versions {
			saving.Go(func() {
				var err error
				versions[i], err = saveUntil(s, key(i), versions[i], func() { acknowledged <- struct{}{} })
				if errors.Is(err, store.ErrStale) || !errors.Is(err, ErrUnavailable) {
					t.Errorf("run %d ends with %v; want ErrUnavailable", i, err)
				}
			})
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			saving.Wait()
			close(acknowledged)
		}()
		count := 0
		for range acknowledged {
			if count++; count == perRound {
				cluster.Kill(t) // while the others save, and this one is about to
			}
		}
		<-stopped
		cluster.Restart(t)

		for i := range versions {
			checkpoint, err := s.Load(t.Context(), key(i))
			if err != nil {
				t.Fatalf("round %d: the store does not recover: %v", round, err)
			}
			if checkpoint.Version != versions[i] && checkpoint.Version != versions[i]+1 {
				t.Errorf("round %d, run %d: version %d is stored, %d was acknowledged", round, i, checkpoint.Version, versions[i])
			}
			wantConsistent(t, checkpoint)
			versions[i] = checkpoint.Version
		}
	}
}

// I2: an accepted decision survives a kill of the server, and the run that it woke is still ready.
func TestI2_KilledServerKeepsAcceptedDecisions(t *testing.T) {
	const people, enough = 4, 40
	t.Parallel() // it has its own server
	cluster := pgtest.Start(t)
	s := mustOpen(t, cluster.Database(t), Config{})
	accepted := make(chan string)
	var deciding sync.WaitGroup
	for n := range people {
		deciding.Go(func() {
			for round := 0; ; round++ {
				id := fmt.Sprintf("%d-%d", n, round)
				lease, err := s.Create(context.Background(), fixture.NewRun(id))
				if err == nil {
					_, err = s.EndExecution(context.Background(), lease, fixture.WaitingEnd(nil, id))
				}
				var receipt store.DecisionReceipt
				if err == nil {
					receipt, err = s.Decide(context.Background(), fixture.Decision(id, id, store.VerdictApprove, id))
				}
				if err != nil {
					if !errors.Is(err, ErrUnavailable) {
						t.Errorf("%v; want ErrUnavailable", err)
					}
					return
				}
				if receipt.Result == store.ResultAccepted {
					accepted <- id
				}
			}
		})
	}
	go func() {
		deciding.Wait()
		close(accepted)
	}()
	var ids []string
	for id := range accepted {
		if ids = append(ids, id); len(ids) == enough {
			cluster.Kill(t)
		}
	}
	cluster.Restart(t)
	for _, id := range ids {
		run, err := s.Get(t.Context(), "acme", "key-"+id)
		asked, otherErr := s.Interrupts(t.Context(), "acme", id)
		if err != nil || otherErr != nil || run.Status != store.StatusReady || len(asked) != 1 || asked[0].Verdict != store.VerdictApprove {
			t.Errorf("%s was accepted, and is %s with %+v, %v, %v", id, run.Status, asked, err, otherErr)
		}
	}
}

// A server with a synchronous standby acknowledges a commit when the standby has it. A commit whose
// wait is cancelled is also reported as a success, but it is lost if the standby takes over.
func TestSave_CancelledDuringStandbyWaitReturnsError(t *testing.T) {
	t.Parallel() // it has its own server
	cluster := pgtest.Start(t)
	connString := cluster.Database(t)
	s := mustOpen(t, connString, Config{})
	admin := raw(t, cluster.Superuser(t, connString))
	mustExec(t, admin, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`)
	for name, cancelBy := range map[string]func(cancel context.CancelFunc){
		"the caller": func(cancel context.CancelFunc) { cancel() },
		"an administrator": func(context.CancelFunc) {
			mustExec(t, admin, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
		},
	} {
		key := store.Key{Run: name}
		for base := int64(0); ; base++ {
			ctx, cancel := context.WithCancel(t.Context())
			saved := make(chan error)
			go func() {
				_, err := s.Save(ctx, key, base, generation(base+1))
				saved <- err
			}()
			err, waited := cancelSaveAtStandby(t, admin, saved, func() { cancelBy(cancel) })
			cancel()
			if !waited && err == nil {
				continue // the server had not read its new configuration yet
			}
			if err == nil || errors.Is(err, store.ErrStale) {
				t.Errorf("cancelled by %s: Save: %v; want an error that leaves the outcome open", name, err)
			}
			if checkpoint, err := s.Load(t.Context(), key); err != nil || checkpoint.Version != base+1 {
				t.Errorf("cancelled by %s: version %d, %v; want the save to be there", name, checkpoint.Version, err)
			}
			break
		}
	}
}

// cancelSaveAtStandby cancels a save when it waits for the standby, and returns the result of the
// save and whether it waited.
func cancelSaveAtStandby(t *testing.T, admin *pgx.Conn, saved <-chan error, cancel func()) (err error, waited bool) {
	t.Helper()
	for {
		select {
		case err := <-saved:
			return err, false
		default:
		}
		err := admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')`).Scan(&waited)
		if err != nil {
			t.Fatal(err)
		}
		if waited {
			cancel()
			return <-saved, true
		}
	}
}
