//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	_ "modernc.org/sqlite"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// seedService is the first protocol of Fermata, as designed: one lock per run that becomes stale,
// the last resume id, the decision in the request. Its provider is a thread with a position. The
// checks must refute it.
type seedService struct {
	db    *sql.DB
	world *outside
	stale time.Duration // when a lock counts as stale; 30 s in the original
}

const seedSchema = `
CREATE TABLE IF NOT EXISTS execution_state_handles (
	state_key TEXT PRIMARY KEY, provider_ref TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active',
	resume_lock_id TEXT, resume_lock_at REAL, last_resume_id TEXT, cached_outcome TEXT);
CREATE TABLE IF NOT EXISTS threads (thread_id TEXT PRIMARY KEY, position INTEGER NOT NULL, state TEXT NOT NULL);`

// seedGates are passed one after the other.
var seedGates = []string{charge, reserve, notify, pick, ship}

func openSeed(config replicaConfig) (service, error) {
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "journal_mode(wal)", "synchronous(full)"}}
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(config.Store)+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	// The process that creates the file has it to itself for a moment.
	for deadline := time.Now().Add(openTimeout); ; time.Sleep(10 * time.Millisecond) {
		if _, err = db.Exec(seedSchema); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return nil, err
		}
	}
	return &seedService{db: db, world: &outside{url: config.Sink, life: config.Life}, stale: config.Lease}, nil
}

func (s *seedService) stop() { _ = s.db.Close() }

func (s *seedService) start(ctx context.Context, r request) (answer, error) {
	state, err := json.Marshal(order{Key: r.Key, Amount: r.Amount})
	if err != nil {
		return answer{}, err
	}
	_, err = s.db.ExecContext(ctx, `
INSERT INTO threads (thread_id, position, state) VALUES (?1, 0, ?2) ON CONFLICT DO NOTHING;
INSERT INTO execution_state_handles (state_key, provider_ref) VALUES (?1, ?1) ON CONFLICT DO NOTHING`, r.Key, string(state))
	if err != nil {
		return answer{}, err
	}
	return answer{Kind: saidOutcome}, nil
}

// decide does what the seed calls resume: check the last id, take the lock, resume the provider,
// release the lock.
func (s *seedService) decide(ctx context.Context, r request) (answer, error) {
	ctx = context.WithoutCancel(ctx)
	if r.Account != account {
		return answer{Kind: saidNoRun}, nil
	}
	var last, cached sql.NullString
	err := s.db.QueryRowContext(ctx, `SELECT last_resume_id, cached_outcome FROM execution_state_handles WHERE state_key = ?`, r.Key).Scan(&last, &cached)
	if err != nil {
		return answer{}, err
	}
	if last.String == r.ResumeID {
		return answer{Kind: saidOutcome, Outcome: json.RawMessage(cached.String)}, nil
	}
	var ref string
	err = s.db.QueryRowContext(ctx, `
UPDATE execution_state_handles SET resume_lock_id = ?2, resume_lock_at = unixepoch('subsec')
WHERE state_key = ?1 AND status = 'active' AND (resume_lock_at IS NULL OR resume_lock_at < unixepoch('subsec') - ?3)
RETURNING provider_ref`, r.Key, r.ResumeID, s.stale.Seconds()).Scan(&ref)
	if errors.Is(err, sql.ErrNoRows) {
		return answer{Kind: saidConflict}, nil
	}
	if err != nil {
		return answer{}, err
	}
	outcome, completed, failure := s.resume(ctx, ref, r)
	_, err = s.db.ExecContext(ctx, `
UPDATE execution_state_handles SET resume_lock_id = NULL, resume_lock_at = NULL, last_resume_id = ?2, cached_outcome = ?3,
       status = CASE WHEN ?4 THEN 'completed' ELSE status END
WHERE state_key = ?1 AND resume_lock_id = ?2`, r.Key, r.ResumeID, outcome, completed)
	return answer{Kind: saidOutcome, Outcome: json.RawMessage(outcome)}, errors.Join(failure, err)
}

// resume passes the value to the provider, without checking which question it answers.
func (s *seedService) resume(ctx context.Context, thread string, r request) (outcome string, completed bool, err error) {
	o, position, err := s.thread(ctx, thread)
	if err != nil || position == len(seedGates) {
		return `{"status":"error"}`, position == len(seedGates), err
	}
	value := r.Targets[slices.Min(slices.Collect(maps.Keys(r.Targets)))]
	gate := seedGates[position]
	result := o.result(gate)
	if gate == pick {
		*result = string(value)
	} else if *result, err = s.pass(ctx, gate, o, value); err != nil {
		return `{"status":"error"}`, false, err
	}
	state, err := json.Marshal(o)
	if err == nil {
		_, err = s.db.ExecContext(ctx, `UPDATE threads SET position = ?2, state = ?3 WHERE thread_id = ?1`, thread, position+1, string(state))
	}
	return `{"status":"needs_input"}`, position+1 == len(seedGates), err
}

func (s *seedService) pass(ctx context.Context, gate string, o order, value json.RawMessage) (string, error) {
	var said fermata.Decision
	if err := json.Unmarshal(value, &said); err != nil || said.Verb != fermata.VerbApprove {
		return wasRejected, nil
	}
	args := action{Order: o.Key, Gate: gate, Amount: o.Amount}
	if said.Args != nil {
		if err := json.Unmarshal(said.Args, &args); err != nil {
			return wasRejected, nil
		}
	}
	receipt, err := s.world.call(ctx, call{Target: targetDumb, Key: o.Key + "/" + gate, Action: args})
	return wasDone + receipt, err
}

func (s *seedService) thread(ctx context.Context, thread string) (o order, position int, err error) {
	var state string
	err = s.db.QueryRowContext(ctx, `SELECT position, state FROM threads WHERE thread_id = ?`, thread).Scan(&position, &state)
	if err != nil {
		return o, position, err
	}
	return o, position, json.Unmarshal([]byte(state), &o)
}

// look returns the gate at which the thread waits.
func (s *seedService) look(ctx context.Context, r request) (answer, error) {
	o, position, err := s.thread(ctx, r.Key)
	if err != nil {
		return answer{}, err
	}
	v := &view{Run: r.Key, Status: store.StatusCompleted}
	if position < len(seedGates) {
		q, err := seedQuestion(o, seedGates[position])
		if err != nil {
			return answer{}, err
		}
		v.Status, v.Questions = store.StatusWaiting, []question{q}
	}
	return answer{Kind: saidView, View: v}, nil
}

func seedQuestion(o order, gate string) (question, error) {
	q := question{ID: fmt.Sprintf("%s/%s", o.Key, gate), Kind: fermata.Approval.Name(), State: store.InterruptPending}
	var asked any = picking{Order: o.Key, Gate: gate}
	if gate == pick {
		q.Kind = picks.Name()
	} else {
		args, err := json.Marshal(action{Order: o.Key, Gate: gate, Amount: o.Amount})
		if err != nil {
			return q, err
		}
		asked = fermata.ApprovalRequest{Action: gate, Args: args}
	}
	var err error
	q.Data, err = json.Marshal(asked)
	return q, err
}

// cancel, retry and act are not part of the seed.
func (s *seedService) cancel(context.Context, request) (answer, error) {
	return answer{Kind: saidOver}, nil
}

func (s *seedService) act(context.Context, request) (answer, error) {
	return answer{Kind: saidNoRun}, nil
}

func (s *seedService) retry(context.Context, request) (answer, error) {
	return answer{Kind: saidOver}, nil
}
