package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// rooms caches how many runs each account may still start. Finding that out counts open questions and lists runs under way, which is most expensive when
// there are many. So a result is used for a second, and for a part of the starts that it leaves room for; near the limit every start counts anew. One count
// per account is under way at a time, and serves all who come meanwhile.
type rooms struct {
	mu    sync.Mutex
	of    map[string]room
	looks map[string]*look // by account
}

// room is how many starts an account has left before the next count, and until when.
type room struct {
	starts int
	until  time.Time
}

// look is a count under way.
type look struct {
	done    chan struct{}
	waiting int
	err     error // why there is no room, or why the count failed; set when it is done
}

const (
	// roomHolds is how long a look holds.
	roomHolds = time.Second
	// roomShare is the part of the room that one look gives away: other replicas give theirs, and a run may ask more than one question.
	roomShare = 8
	// roomsKept is how many accounts may be remembered before those are forgotten whose look is too old.
	roomsKept = 1000
)

// take takes one start of what the last look has left, and reports whether there was one.
func (r *rooms) take(account string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.of[account]
	if left.starts <= 0 || !now.Before(left.until) {
		return false
	}
	left.starts--
	r.of[account] = left
	return true
}

// join returns the look at an account that is under way, or begins one.
func (r *rooms) join(account string) (l *look, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.looks[account]; l != nil {
		l.waiting++
		return l, false
	}
	if r.looks == nil {
		r.looks = make(map[string]*look)
	}
	l = &look{done: make(chan struct{})}
	r.looks[account] = l
	return l, true
}

// saw ends a look. There is room for so many more: for whoever looked, for those who waited for that, and a part of the rest for those who come.
func (r *rooms) saw(account string, l *look, more int, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(l.done)
	delete(r.looks, account)
	if l.err = err; err != nil {
		return
	}
	if r.of == nil || len(r.of) >= roomsKept {
		kept := make(map[string]room)
		for account, left := range r.of {
			if now.Before(left.until) {
				kept[account] = left
			}
		}
		r.of = kept
	}
	r.of[account] = room{starts: max(more/roomShare, min(more-1, l.waiting)), until: now.Add(roomHolds)}
}

// roomFor refuses a start if the account has too much open, or under way.
func (s *Server) roomFor(ctx context.Context, request executor.Request) error {
	problem := s.look(ctx, request.Account)
	if problem == nil {
		return nil
	}
	if view, err := s.config.Executor.Look(ctx, request.Account, request.StateKey); err == nil && (view.Status.Alive() || executor.Repeats(request, view.Run)) {
		return nil // it was started before, and is to be repeated
	}
	return problem
}

// look takes a start of the room of an account, and looks for room if nobody has.
func (s *Server) look(ctx context.Context, account string) error {
	for !s.rooms.take(account, time.Now()) {
		l, mine := s.rooms.join(account)
		if mine {
			return s.lookFor(ctx, account, l)
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return explain(ctx.Err())
		}
		if p, ok := errors.AsType[*Problem](l.err); ok && p.limit != "" {
			return p // else it could not be found out for whoever looked, who may have gone away
		}
	}
	return nil
}

// lookFor finds out how much room an account has, for all who wait for that. They look for themselves if it panics.
func (s *Server) lookFor(ctx context.Context, account string, l *look) (err error) {
	more, err := 0, errNotSeen
	defer func() { s.rooms.saw(account, l, more, err, time.Now()) }()
	more, err = s.room(ctx, account)
	return err
}

var errNotSeen = errors.New("server: the room of an account was not found out")

// room is how many more runs an account could start, or why it cannot start any.
func (s *Server) room(ctx context.Context, account string) (more int, err error) {
	open, err := s.config.Executor.Pending(ctx, account, s.config.Limits.Open)
	if err != nil {
		return 0, explain(err)
	}
	if open >= s.config.Limits.Open {
		return 0, full("too_many_open", "open", "%d questions are open; %d are allowed", open, s.config.Limits.Open)
	}
	runs, err := s.underWay(ctx, account)
	if err != nil {
		return 0, explain(err)
	}
	if runs >= s.config.Limits.Runs {
		return 0, full("too_many_runs", "runs", "%d runs are under way; %d are allowed", runs, s.config.Limits.Runs)
	}
	return min(s.config.Limits.Open-open, s.config.Limits.Runs-runs), nil
}

// underWay counts the runs of an account that are ready or running, but no further than to the limit: page by page, because a store lists no more at
// once.
func (s *Server) underWay(ctx context.Context, account string) (count int, err error) {
	filter := store.Filter{Status: []store.Status{store.Ready, store.Running}}
	for count < s.config.Limits.Runs {
		filter.Limit = min(s.config.Limits.Runs-count, maxPage)
		runs, err := s.config.Executor.List(ctx, account, filter)
		if err != nil {
			return 0, err
		}
		count += len(runs)
		if len(runs) < filter.Limit {
			break
		}
		last := runs[len(runs)-1]
		filter.Before = store.RunPlace{Created: last.Created, ID: last.ID}
	}
	return count, nil
}

// full is the refusal of what there is no room for now.
func full(code, limit, detail string, args ...any) *Problem {
	p := problem(code, detail, args...)
	p.retryAfter, p.limit = fullPause, limit
	return p
}

// fullPause is how long to wait for room: people decide no faster.
const fullPause = 30 * time.Second

// maxPage is how many items of a list a store returns at once.
const maxPage = 1000
