package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// The test in this file reads through the executor and writes through the store port below the
// encryption, so that it does not depend on where values are encrypted.

// swapPlace is where an encrypted value is stored.
type swapPlace struct {
	account  string
	what     store.SealedField
	id, part string
}

// kind names what is stored there: the part only for documents, where it is the kind.
func (p swapPlace) kind() string {
	if p.what == store.SealedDocument {
		return string(p.what) + ":" + p.part
	}
	return string(p.what)
}

// swapValues returns the first value of each place of a store, and the places in the order in which
// the store has them.
func swapValues(t *testing.T, s store.Store) (places []swapPlace, values map[swapPlace][]byte) {
	t.Helper()
	values = make(map[swapPlace][]byte)
	eachSealed(t, s, func(p swapPlace, data []byte) []byte {
		if values[p] == nil {
			places, values[p] = append(places, p), bytes.Clone(data)
		}
		return nil
	})
	return places, values
}

// swap exchanges the values of two places.
func swap(t *testing.T, s store.Store, values map[swapPlace][]byte, a, b swapPlace) {
	t.Helper()
	eachSealed(t, s, func(p swapPlace, _ []byte) []byte {
		switch p {
		case a:
			return values[b]
		case b:
			return values[a]
		}
		return nil
	})
}

func eachSealed(t *testing.T, s store.Store, replace func(swapPlace, []byte) []byte) {
	t.Helper()
	for after := ""; ; {
		next, err := s.Reencrypt(t.Context(), after, 0, func(v store.SealedValue) ([]byte, error) {
			return replace(swapPlace{v.Account, v.Field, v.ID, v.Part}, v.Data), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if next == "" {
			return
		}
		after = next
	}
}

// swapAccounts and swapKeys are the accounts of the test and the runs that each has. Two runs are
// completed, two wait.
var (
	swapAccounts = []string{"acme", "other"}
	swapKeys     = []string{"done-1", "done-2", "open-1", "open-2"}
)

// swapMarker is in everything that is secret of a run, and in nothing of another run.
func swapMarker(account, key string) string { return "secret-" + account + "-" + key }

// markedProvider gives each run a ref with its marker, and keeps what the executor hands to it.
type markedProvider struct {
	provider.Provider
	mu     sync.Mutex
	handed map[string]string // by run id
}

func (p *markedProvider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	var input order
	if err := json.Unmarshal(e.Input, &input); err != nil {
		return provider.Result{}, err
	}
	p.mu.Lock()
	p.handed[e.Run.ID] += fmt.Sprintf(" %s %s", e.Run.Ref, e.Input)
	p.mu.Unlock()
	if err := e.Owner.SetRef(ctx, "ref-"+input.Table); err != nil {
		return provider.Result{}, err
	}
	return p.Provider.Execute(ctx, e)
}

// swapSite is a store with the runs of the test, and an executor on it.
type swapSite struct {
	*testing.T
	s          store.Store
	p          *markedProvider
	e          *executor.Executor
	interrupts map[string]string // by marker
	runs       map[string]string // by marker
}

func newSwapSite(t *testing.T, s store.Store) *swapSite {
	t.Helper()
	g := graph.New[order]("drop")
	g.Node("prepare", func(_ context.Context, o order) (order, error) {
		// so large that it becomes a part of its own
		o.Receipt = strings.Repeat("none yet for "+o.Table+" ", 30)
		return o, nil
	})
	g.Node("drop", func(ctx context.Context, o order) (order, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[string]{Name: "drop-table", Args: o.Table})
		if err != nil {
			return o, err
		}
		o.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, table, _ string) (string, error) { return "receipt-" + table, nil })
		return o, err
	})
	g.Edge(graph.Start, "prepare")
	g.Edge("prepare", "drop")
	g.Edge("drop", graph.End)
	site := &swapSite{T: t, s: s, p: &markedProvider{Provider: providing(t, g), handed: make(map[string]string)}, interrupts: make(map[string]string), runs: make(map[string]string)}
	site.reopen(time.Minute)
	for _, account := range swapAccounts {
		for _, key := range swapKeys {
			site.fill(account, key)
		}
	}
	return site
}

// reopen replaces the executor, so that nothing is cached. Its callers wait so long for a run.
func (s *swapSite) reopen(wait time.Duration) {
	s.Helper()
	s.e = executorOf(s.T, s.s, s.p, func(c *executor.Config) {
		c.Desk.Policy = loadRules(s.T, oneDBA)
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob"}}
		c.Desk.Channels = []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return nil })}
		c.Log = slog.New(slog.DiscardHandler)
		c.Wait = wait
	})
}

// startOf is the start of a run, approveOf its approval.
func (s *swapSite) startOf(account, key string) executor.RunRequest {
	return executor.RunRequest{Account: account, StateKey: key, Graph: "inproc:drop", Input: json.RawMessage(`{"table":"` + swapMarker(account, key) + `"}`), Actor: "req"}
}

func (s *swapSite) approveOf(account, key string) executor.RunRequest {
	marker := swapMarker(account, key)
	return executor.RunRequest{
		Account: account, StateKey: key, ResumeID: "resume-" + key, Actor: "ann",
		Targets: map[string]executor.Answer{s.interrupts[marker]: {Value: json.RawMessage(`{"verb":"approve","reason":"reason-` + marker + `"}`)}},
	}
}

func isDone(key string) bool { return strings.HasPrefix(key, "done") }

// fill makes a run, with a comment and a question to the requester; and, if it is to be completed,
// approves it and makes a grant of that.
func (s *swapSite) fill(account, key string) {
	s.Helper()
	marker := swapMarker(account, key)
	asked := waits(s.T, mustRun(s.T, s.e, s.startOf(account, key)))
	id := asked.Interrupts[0].ID
	s.interrupts[marker], s.runs[marker] = id, asked.Run
	for _, act := range []desk.Command{desk.Comment{From: by("bob"), Text: "comment-" + marker}, desk.AskClarification{From: by("bob"), Question: "question-" + marker}} {
		if _, err := s.e.Act(s.Context(), account, id, act); err != nil {
			s.Fatal(err)
		}
	}
	if !isDone(key) {
		return
	}
	completed(s.T, mustRun(s.T, s.e, s.approveOf(account, key)))
	if _, err := s.e.CreateGrant(s.Context(), account, id, executor.GrantRequest{By: "ann", Auth: requirement.AuthSSO, TTL: time.Hour, MaxUses: 1}); err != nil {
		s.Fatal(err)
	}
}

// read collects everything that the executor says of a run, and whether it said that something
// cannot be read.
func (s *swapSite) read(account, key string) (said string, unreadable bool) {
	s.Helper()
	marker := swapMarker(account, key)
	id := s.interrupts[marker]
	var all strings.Builder
	note := func(v any, err error) {
		data, failure := json.Marshal(v)
		fmt.Fprintf(&all, "%#v\n%s\n%v\n%v\n", v, data, failure, err)
		unreadable = unreadable || errors.Is(err, executor.ErrUnreadable)
	}
	view, err := s.e.GetRun(s.Context(), account, key)
	note(view, err)
	question, err := s.e.GetRequest(s.Context(), account, id)
	note(question, err)
	request, err := s.e.RequestDocument(s.Context(), account, id)
	note(request, err)
	past, err := s.e.RunOutcome(s.Context(), account, s.runs[marker])
	note(past, err)
	questions, err := s.e.ListRequests(s.Context(), account, store.InboxFilter{})
	note(nil, err)
	for _, q := range questions {
		if q.ID == id {
			note(q, nil)
			unreadable = unreadable || q.Unreadable
		}
	}
	answers, _, err := s.e.ListSettled(s.Context(), account, "", 100)
	note(nil, err)
	for _, a := range answers {
		if a.Interrupt == id {
			note(a, nil)
			unreadable = unreadable || a.Unreadable
		}
	}
	policies, err := s.s.Documents(s.Context(), account, "policy", store.DocumentFilter{})
	if err != nil || len(policies) != 1 {
		s.Fatalf("%d policies, %v", len(policies), err)
	}
	text, err := s.e.PolicyByDigest(s.Context(), account, policies[0].ID)
	note(text, err)
	var out bytes.Buffer
	_, err = s.e.ExportAccount(s.Context(), account, &out)
	note(nil, err)
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.Contains(line, s.runs[marker]) {
			all.WriteString(line)
			all.WriteString(decodedCheckpoint(s.T, line))
		}
	}
	grants, err := s.e.ListGrants(s.Context(), account)
	note(nil, err)
	if unreadable = unreadable || len(grants) != 2; isDone(key) { // grant is unreadable is left out
		for _, g := range grants {
			if g.Request == id {
				note(g, nil)
			}
		}
	}
	return all.String(), unreadable
}

// decodedCheckpoint returns the parts of a checkpoint in a line of an export.
func decodedCheckpoint(t *testing.T, line string) (text string) {
	t.Helper()
	var exported struct{ Checkpoint map[string][]byte }
	if err := json.Unmarshal([]byte(line), &exported); err != nil {
		t.Fatal(err)
	}
	for _, part := range exported.Checkpoint {
		text += string(part)
	}
	return text
}

// goesOn repeats what was said to a run, and approves the one that waits.
func (s *swapSite) goesOn(account, key string) (string, bool) {
	s.Helper()
	var all strings.Builder
	stopped := false
	for _, request := range []executor.RunRequest{s.startOf(account, key), s.approveOf(account, key)} {
		outcome, err := s.e.Run(s.Context(), request)
		fmt.Fprintf(&all, "%#v\n%v\n", outcome, err)
		if done, ok := outcome.(fermata.Completed); ok {
			all.Write(done.Output)
		}
		stopped = stopped || err != nil
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return all.String() + s.p.handed[s.runs[swapMarker(account, key)]], stopped
}

// owns fails if a text has the marker of another run.
func (s *swapSite) owns(account, key, text string) {
	s.Helper()
	for _, a := range swapAccounts {
		for _, k := range swapKeys {
			if other := swapMarker(a, k); other != swapMarker(account, key) && strings.Contains(text, other) {
				at := strings.Index(text, other)
				s.Errorf("I7, I8: of %s/%s one reads %s: …%s…", account, key, other, text[max(0, at-200):min(len(text), at+80)])
			}
		}
	}
}

// swapRelations are the ways in which two places of a swap differ.
var swapRelations = map[string]func(a, b swapPlace) bool{
	otherAccount: func(a, b swapPlace) bool { return a.kind() == b.kind() && a.account != b.account },
	otherRecord:  func(a, b swapPlace) bool { return a.kind() == b.kind() && a.account == b.account && a.id != b.id },
	otherField:   func(a, b swapPlace) bool { return a.kind() != b.kind() && a.account == b.account && a.id == b.id },
	otherPart: func(a, b swapPlace) bool {
		return a.kind() == b.kind() && a.account == b.account && a.id == b.id && a.part != b.part
	},
}

const (
	otherAccount = "I8 other account"
	otherRecord  = "other record"
	otherField   = "other field"
	otherPart    = "other part" // of one checkpoint
)

// An encrypted value that is moved to another account, to another record or to another field does
// not decrypt there: the executor reports it, and never returns it as the content of that place.
//
// Today's design does not bind, and so this test does not swap: the outcomes of several resumes of
// one run, the receipts of several effects of one interrupt, and older values of the same place.
func TestI7_ValueMovedToAnotherPlaceIsUnreadable(t *testing.T) {
	all, records, accounts := []string{otherAccount, otherRecord, otherField}, []string{otherAccount, otherRecord}, []string{otherAccount}
	// Everything that is encrypted in the store of this test, and where else there is a value to
	// swap it with.
	kinds := map[string][]string{
		"ref": all, "input": all, "outcome": all, "part": append(all, otherPart), "data": all, "answer": all, "receipt": all, "paper:request": all, "paper:run": all,
		"paper:notice": records, "paper:ruling": records, "paper:grant": records, "paper:policy": accounts,
	}
	t.Run("nothing is moved", func(t *testing.T) {
		site := newSwapSite(t, memory.NewStore(nil))
		places, _ := swapValues(t, site.s)
		for _, p := range places {
			// the key check has an account, a record and a field of its own
			if _, ok := kinds[p.kind()]; !ok && p.what != store.SealedNamedValue {
				t.Errorf("%s is encrypted and not in this test", p.kind())
			}
		}
		if unreadable, stopped := site.reports(); unreadable || stopped {
			t.Errorf("something is reported as unreadable: %v, a run stops: %v", unreadable, stopped)
		}
	})
	for kind, names := range kinds {
		if testing.Short() {
			names = names[:1]
		}
		for _, name := range names {
			t.Run(kind+"/"+name, func(t *testing.T) {
				site := newSwapSite(t, memory.NewStore(nil))
				a, b := site.swap(kind, swapRelations[name])
				unreadable, stopped := site.reports()
				if kind == "ref" {
					unreadable = stopped // only the provider gets it
				}
				if !unreadable {
					t.Errorf("after %+v and %+v were swapped everything can be read", a, b)
				}
			})
		}
	}
}

// swap exchanges the values of the first two places of a kind and a relation.
func (s *swapSite) swap(kind string, related func(a, b swapPlace) bool) (swapPlace, swapPlace) {
	s.Helper()
	places, values := swapValues(s.T, s.s)
	for _, a := range places {
		for _, b := range places {
			// the ref of a run that is over is not read any more
			if a.kind() == kind && related(a, b) && (kind != "ref" || s.waits(a)) {
				swap(s.T, s.s, values, a, b)
				s.reopen(100 * time.Millisecond) // for runs that cannot go on
				return a, b
			}
		}
	}
	s.Fatal("there are no two such values")
	panic("unreachable")
}

// waits reports whether a place belongs to a run that waits.
func (s *swapSite) waits(p swapPlace) bool {
	for _, key := range swapKeys {
		if !isDone(key) && s.runs[swapMarker(p.account, key)] == p.id {
			return true
		}
	}
	return false
}

// reports reads everything and then lets all runs go on. It returns whether something was
// reported as unreadable, and whether a run could not go on.
func (s *swapSite) reports() (unreadable, stopped bool) {
	s.Helper()
	each := func(step func(account, key string) (string, bool)) (any bool) {
		for _, account := range swapAccounts {
			for _, key := range swapKeys {
				text, failed := step(account, key)
				if s.owns(account, key, text); !failed && !strings.Contains(text, swapMarker(account, key)) {
					s.Errorf("%s/%s has lost its content without an error: %s", account, key, text)
				}
				any = any || failed
			}
		}
		return any
	}
	return each(s.read), each(s.goesOn)
}
