package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// barred is a store that blocks the first call of a method, as if its process were suspended just
// before it.
type barred struct {
	store.Store
	what    string
	once    sync.Once
	reached chan struct{} // closed when a caller is blocked
	open    chan struct{}
}

func bar(s store.Store, what string) *barred {
	return &barred{Store: s, what: what, reached: make(chan struct{}), open: make(chan struct{})}
}

func (b *barred) stop(what string) {
	if what == b.what {
		b.once.Do(func() { close(b.reached); <-b.open })
	}
}

func (b *barred) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	b.stop("Standing")
	return b.Store.RunSnapshot(ctx, account, stateKey, own)
}

func (b *barred) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	if kind == "resume" {
		b.stop("Paper")
	}
	return b.Store.Document(ctx, account, kind, id)
}

func (b *barred) CommitWrites(ctx context.Context, account string, beside store.Writes) error {
	if slices.ContainsFunc(beside.Documents, func(p store.DocumentChange) bool { return p.Kind == "resume" }) {
		b.stop("Amend")
	}
	return b.Store.CommitWrites(ctx, account, beside)
}

func (b *barred) Decide(ctx context.Context, decision store.Decision) (store.DecisionReceipt, error) {
	b.stop("Decide")
	return b.Store.Decide(ctx, decision)
}

func (b *barred) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	b.stop("Get")
	return b.Store.Get(ctx, account, stateKey)
}

func (b *barred) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	b.stop("Rest")
	return b.Store.EndExecution(ctx, lease, rest)
}

func (b *barred) Cancel(ctx context.Context, account, run string, as store.Status, waits []string, beside store.Writes) (store.Run, error) {
	b.stop("Cancel")
	return b.Store.Cancel(ctx, account, run, as, waits, beside)
}

func (b *barred) Retry(ctx context.Context, account, run string, beside store.Writes) (store.Run, error) {
	b.stop("Retry")
	return b.Store.Retry(ctx, account, run, beside)
}

func (b *barred) Create(ctx context.Context, run store.NewRun) (store.Lease, error) {
	b.stop("Create")
	return b.Store.Create(ctx, run)
}

// race is one vote under one resume id at several replicas, before and after the end of its
// request.
type race struct {
	t       *testing.T
	s       store.Store
	request executor.RunRequest
	all     sync.WaitGroup
	mu      sync.Mutex
	answers []string
}

// says sends the vote to a replica, and waits until it is blocked or has answered.
func (r *race) says(s store.Store) { r.saysWith(s, nil) }

// saysWith is says at a replica with another directory.
func (r *race) saysWith(s store.Store, people desk.StaticDirectory) {
	e := office(r.t, s, new(dropper), func(c *executor.Config) {
		if people != nil {
			c.Desk.Directory = people
		}
	})
	request := r.request
	request.Wait = -1
	r.all.Go(func() {
		_, err := e.Run(r.t.Context(), request)
		answer := "taken"
		if refused, ok := errors.AsType[*executor.RefusedError](err); ok {
			answer = string(refused.Result)
		} else if err != nil && !errors.Is(err, executor.ErrPending) {
			answer = err.Error()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.answers = append(r.answers, answer)
	})
	synctest.Wait()
}

// ends ends the request, by votes or by its deadline.
func (r *race) ends(byClock bool) {
	e := office(r.t, r.s, new(dropper), func(c *executor.Config) { c.Log, c.Poll = slog.New(slog.DiscardHandler), time.Minute })
	if byClock {
		e.StartWorkers()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		return
	}
	for _, who := range []string{"ann", "eve", "bob"} {
		if _, err := says(r.t, e, who, "the end, by "+who, yes); err != nil && who != "bob" {
			r.t.Fatal(err)
		}
	}
}

// The same vote under the same id is sent to two replicas. One of them read the request before its
// end and the other after it. Both return the same result, and so do later calls. Each replica is
// blocked before its last call.
func TestI3_OneAnswerAcrossTheEndOfARequest(t *testing.T) {
	for _, test := range []struct {
		who string
		// where the replicas are blocked: the one before the end, and the one after it
		before, after  string
		beforeGoes     bool // that one continues before the end
		byClock, first bool // the one before the end is released first
		want           string
	}{
		{who: "mallory", before: "Amend", after: "Decide", first: true, want: string(store.ResultAlreadyDecided)},
		{who: "mallory", before: "Amend", after: "Decide", byClock: true, first: true, want: string(store.ResultAlreadyDecided)},
		{who: "mallory", before: "Amend", after: "", want: string(store.ResultAlreadyDecided)},
		// it reads that the store will answer
		{who: "mallory", before: "Paper", after: "Decide", first: true, want: string(store.ResultAlreadyDecided)},
		{who: "mallory", before: "Paper", after: "Decide", byClock: true, first: true, want: string(store.ResultAlreadyDecided)},
		{who: "mallory", before: "", after: "", beforeGoes: true, want: string(executor.Forbidden)},
		{who: "mallory", before: "Standing", after: "", byClock: true, want: string(store.ResultAlreadyDecided)},
		{who: "bob", before: "Amend", after: "Decide", byClock: true, first: true, want: string(store.ResultAlreadyDecided)},
		{who: "bob", before: "Amend", after: "", byClock: true, want: string(store.ResultAlreadyDecided)},
		{who: "bob", before: "", after: "", beforeGoes: true, byClock: true, want: "taken"},
	} {
		t.Run(fmt.Sprintf("%s, held up at %q and %q, by the clock %v", test.who, test.before, test.after, test.byClock), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				asked := startAs(t, office(t, s, new(dropper), nil), "req").Interrupts[0].ID
				r := &race{t: t, s: s, request: word(test.who, "drop-1", "r", asked, yes)}
				early, late := bar(s, test.before), bar(s, test.after)
				r.says(early)
				r.ends(test.byClock)
				r.says(late)
				gates := []*barred{late, early}
				if test.first {
					slices.Reverse(gates)
				}
				for _, gate := range gates {
					close(gate.open)
					synctest.Wait()
				}
				r.says(s)
				r.all.Wait()
				if want := []string{test.want, test.want, test.want}; !slices.Equal(r.answers, want) {
					t.Errorf("results %q, want %q", r.answers, want)
				}
			})
		})
	}
}

// A replica that reads the request after its end, and the resume ids before it, would not see a
// vote that was counted in between.
func TestI3_VoteCountedWhileAnotherReplicaIsBlocked(t *testing.T) {
	for _, who := range []string{"bob", "mallory"} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore(nil)
			asked := startAs(t, office(t, s, new(dropper), nil), "req").Interrupts[0].ID
			r := &race{t: t, s: s, request: word(who, "drop-1", "r", asked, yes)}
			asleep := bar(s, "Standing")
			r.says(asleep)
			r.says(s)
			r.ends(true)
			close(asleep.open)
			r.all.Wait()
			if len(r.answers) != 2 || r.answers[0] != r.answers[1] {
				t.Errorf("%s got %q", who, r.answers)
			}
		})
	}
}

// A replica found a vote too late, and was suspended before it recorded this. The deadline was in
// an outage and was moved. Another replica got the same vote and counted or refused it, and then
// the request was decided.
func TestI3_LateVoteWhoseDeadlineMoved(t *testing.T) {
	for _, test := range []struct {
		who, want string
		others    []string // these people decide the request then
	}{{"mallory", string(executor.Forbidden), []string{"bob", "eve"}}, {"bob", "taken", []string{"eve"}}} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore(nil)
			e := office(t, s, new(dropper), func(c *executor.Config) { c.Log, c.Poll = slog.New(slog.DiscardHandler), time.Second })
			asked := startAs(t, e, "req").Interrupts[0].ID
			question, err := s.InboxItem(t.Context(), "acme", asked)
			if err != nil {
				t.Fatal(err)
			}
			heard(t, s, map[string]any{"at": time.Now()})
			time.Sleep(time.Until(question.Deadline) + time.Minute)
			r := &race{t: t, s: s, request: word(test.who, "drop-1", "r", asked, yes)}
			asleep := bar(s, "Decide")
			r.says(asleep)
			<-asleep.reached
			e.StartWorkers()
			time.Sleep(5 * time.Second)
			r.says(s)
			for _, other := range test.others {
				if _, err := says(t, e, other, "by "+other, yes); err != nil {
					t.Fatal(err)
				}
			}
			close(asleep.open)
			synctest.Wait()
			r.says(s)
			r.all.Wait()
			if want := []string{test.want, test.want, test.want}; !slices.Equal(r.answers, want) {
				t.Errorf("%s got %q", test.who, r.answers)
			}
		})
	}
}

// A person leaves a group while a replica that is about to record the deciding vote is suspended.
// Another replica, with the new directory, gets the vote under the same id before that.
func TestI3_VoteThatNoLongerSettlesWhenItIsRecorded(t *testing.T) {
	everybody := desk.StaticDirectory{"group:dba": {"ann", "bob", "req"}, "group:owners": {"ann", "eve", "req"}}
	eveHasLeft := desk.StaticDirectory{"group:dba": {"ann", "bob", "req"}, "group:owners": {"ann", "req"}}
	bobHasLeft := desk.StaticDirectory{"group:dba": {"ann", "req"}, "group:owners": {"ann", "eve", "req"}}
	for _, test := range []struct {
		name         string
		first        desk.StaticDirectory // directory of the suspended replica
		at           string               // the call before which it is suspended
		second       desk.StaticDirectory // directory of the other replica
		ends         bool                 // the request ends before the first replica continues
		want, status string
	}{
		{"counted elsewhere, ended", everybody, "Decide", eveHasLeft, true, "taken", "completed"},
		{"counted elsewhere, open", everybody, "Decide", eveHasLeft, false, "taken", "waiting"},
		{"refused elsewhere, ended", everybody, "Decide", bobHasLeft, true, string(executor.Forbidden), "completed"},
		{"refused elsewhere, open", everybody, "Decide", bobHasLeft, false, string(executor.Forbidden), "waiting"},
		{"settled elsewhere, about to be counted", eveHasLeft, "Amend", everybody, false, "taken", "completed"},
		{"settled elsewhere, about to be refused", bobHasLeft, "Amend", everybody, false, "taken", "completed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				e := office(t, s, new(dropper), nil)
				asked := startAs(t, e, "req").Interrupts[0].ID
				if _, err := says(t, e, "eve", "eve's", yes); err != nil {
					t.Fatal(err)
				}
				r := &race{t: t, s: s, request: word("bob", "drop-1", "r", asked, yes)}
				asleep := bar(s, test.at)
				r.saysWith(asleep, test.first)
				<-asleep.reached
				r.saysWith(s, test.second)
				if test.ends {
					if _, err := says(t, e, "ann", "ann's", yes); err != nil {
						t.Fatal(err)
					}
				}
				close(asleep.open)
				r.saysWith(s, test.second)
				r.all.Wait()
				synctest.Wait()
				if want := []string{test.want, test.want, test.want}; !slices.Equal(r.answers, want) {
					t.Errorf("results %q, want %q", r.answers, want)
				}
				if run, err := s.Get(t.Context(), "acme", "drop-1"); err != nil || string(run.Status) != test.status {
					t.Errorf("the run is %s, %v", run.Status, err)
				}
			})
		})
	}
}

// A refusal that passes by itself does not use up the resume id: the same answer counts once the
// stage is open, or the pending decision was withdrawn.
func TestI3_RefusalThatPassesKeepsTheResumeID(t *testing.T) {
	for name, c := range map[string]struct {
		ask  string
		want error
	}{
		"earlier stage":    {`{groups: [{from: ["user:eve"]}, {from: ["user:ben"], stage: 1}], deadline: 1h}`, desk.ErrEarlierStage},
		"pending decision": {`{groups: [{from: [anyone]}], deadline: 1h, undo: 10m}`, desk.ErrDecisionPending},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s store.Store) {
				e := opsExecutor(t, s, "default: ask\ndefaults: {ask: "+c.ask+"}\nrules: []\n")
				id := waits(t, began(t, e, "keeps", "external:request", `{"kind":"approval","data":{"action":"refund","args":{"cents":5}}}`)).Interrupts[0].ID
				vote := func(who string) error {
					_, err := e.Decide(t.Context(), executor.DecideRequest{
						Account: "acme", ResumeID: "1", Actor: who, Auth: requirement.AuthSSO, Targets: map[string]executor.Answer{id: {Value: json.RawMessage(yes)}},
					})
					return err
				}
				pending := errors.Is(c.want, desk.ErrDecisionPending)
				if pending {
					if err := vote("eve"); !errors.Is(err, executor.ErrPending) {
						t.Fatal(err)
					}
				}
				if err := vote("ben"); !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				var err error
				if pending {
					_, err = e.Act(t.Context(), "acme", id, desk.Undo{From: by("eve")})
				} else {
					err = vote("eve")
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := vote("ben"); pending != errors.Is(err, executor.ErrPending) || !pending && err != nil {
					t.Errorf("repeated: %v", err)
				}
				doc, err := e.RequestDocument(t.Context(), "acme", id)
				if err != nil || !slices.ContainsFunc(doc.Votes, func(v desk.Vote) bool { return v.By == "ben" }) {
					t.Errorf("%+v, %v", doc.Votes, err)
				}
			})
		})
	}
}
