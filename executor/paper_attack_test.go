package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

func by(who string) desk.From { return desk.From{Actor: desk.Person(who, desk.AuthSSO), Via: "test"} }

// A deadline that somebody moves is not in the log.
func TestAttack_I12_MovingADeadlineIsInTheLog(t *testing.T) {
	s := memory.NewRuns(nil)
	e := executorOf(t, s, asking(nil, []string{"a"}, nil), nil)
	waits(t, mustRun(t, e, scriptedStart()))
	before := lines(t, s)
	doc, err := e.Act(t.Context(), "acme", "a", desk.Extend{From: by("ann"), Until: time.Now().Add(48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if after := lines(t, s); len(after) == len(before) {
		t.Errorf("I12: ann moved the deadline to %v, and the log says only %q", doc.Deadline, after)
	}
}

// Who was paged hears nothing when the run ends, and the books say that the request is open for ever.
func TestAttack_WhatIsWithdrawnIsToldAndCounted(t *testing.T) {
	s := memory.NewRuns(nil)
	var mu sync.Mutex
	told := make(map[desk.NoticeKind]int)
	e := executorOf(t, s, asking(nil, []string{"a"}, nil), func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{
			{Page: []string{"oncall:dba"}, Severity: "error"}, {At: desk.Duration(time.Hour), Expire: "stale"},
		}}}
		c.Desk.Notify = func(_ context.Context, _ string, n desk.Notice) error {
			mu.Lock()
			defer mu.Unlock()
			told[n.Kind]++
			return nil
		}
	})
	e.Start()
	waits(t, mustRun(t, e, scriptedStart()))
	if err := e.Cancel(t.Context(), "acme", "x-1", desk.From{Actor: desk.Person("ann", "")}); err != nil {
		t.Fatal(err)
	}
	report, err := e.Analytics(t.Context(), "acme", analytics.Query{})
	if err != nil || report.All.Open != 0 || report.All.Withdrawn != 1 {
		t.Errorf("the run is over, and the report says %d open, %d withdrawn (%v)", report.All.Open, report.All.Withdrawn, err)
	}
	if got := lines(t, s); !slices.Contains(got, "request.withdrawn") {
		t.Errorf("I12: the log says %q", got)
	}
	papers, err := s.Papers(t.Context(), "acme", "notice", store.PaperFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(papers) < 2 {
		t.Errorf("somebody was paged, and %d notices are all that there will ever be: no all-clear", len(papers))
	}
}

// The same word under a second resume id is taken, but the id is not bound.
func TestAttack_I3_AnIDOfAWordThatWasSaidBeforeIsBoundToo(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewRuns(nil), d, nil)
	startAs(t, e, "req")
	for _, id := range []string{"r1", "r2"} {
		if _, err := says(t, e, "bob", id, yes); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := says(t, e, "bob", "r2", `{"verb":"reject","reason":"no"}`); !errors.Is(err, executor.ErrReused) {
		t.Errorf("I3: r2 was an accepted yes, and is a no now: %v", err)
	}
}

// A word that counted for a run is answered, when it is repeated, with the state of another run.
func TestAttack_I3_ARepeatedWordIsNotAnsweredWithAnotherRun(t *testing.T) {
	d := new(dropper)
	e := office(t, memory.NewRuns(nil), d, nil)
	asked := startAs(t, e, "req")
	vote := word("bob", "drop-1", "r1", asked.Interrupts[0].ID, yes)
	mustRun(t, e, vote)
	waits(t, mustRun(t, e, executor.Request{
		Account: "acme", StateKey: "drop-1", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"others"}`), Actor: "req", Supersede: true,
	}))
	outcome, err := e.Run(t.Context(), vote)
	if waiting, ok := outcome.(fermata.NeedsInput); ok && waiting.Run != asked.Run {
		t.Errorf("bob's word on %s is answered with run %s, which asks %s (%v)", asked.Run, waiting.Run, waiting.Interrupts[0].Data, err)
	}
}

// A default route makes a question's own, shorter time void.
func TestAttack_AQuestionsOwnTimeHoldsOnAnyRoute(t *testing.T) {
	s := memory.NewRuns(nil)
	p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
		return provider.Result{Rest: provider.Waiting{Questions: []provider.Question{{ID: "q", Envelope: fermata.Envelope{Kind: "k"}, Timeout: time.Minute}}}}, nil
	}}
	e := executorOf(t, s, p, func(c *executor.Config) {
		c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Steps: []desk.Step{{Notify: []string{"inbox"}}, {At: desk.Duration(72 * time.Hour), Expire: "stale"}}}}
	})
	waits(t, mustRun(t, e, scriptedStart()))
	if i := known(t, s, "x-1").Interrupts[0]; i.Deadline.Sub(i.Created).Round(time.Second) != time.Minute {
		t.Errorf("it asked for a minute, the installation for 24 h at most, and has %v", i.Deadline.Sub(i.Created))
	}
}

// What expires loses its graph in the books.
func TestAttack_WhatExpiresKeepsItsGraph(t *testing.T) {
	s := memory.NewRuns(nil)
	e := executorOf(t, s, asking(nil, []string{"a"}, nil), func(c *executor.Config) { c.Timeout = 20 * time.Millisecond })
	waits(t, mustRun(t, e, scriptedStart()))
	e.Start()
	for {
		doc, err := e.Request(t.Context(), "acme", "a")
		if err != nil {
			t.Fatal(err)
		}
		if doc.State != desk.Open {
			break
		}
		time.Sleep(time.Millisecond)
	}
	paper, err := s.Paper(t.Context(), "acme", store.RequestPaper, "a")
	if err != nil || !strings.Contains(string(paper.Facts), `"scripted:it"`) {
		t.Errorf("%s, %v", paper.Facts, err)
	}
	kept, _ := s.AuditLines(t.Context(), "acme", 0, 0)
	for _, l := range kept {
		if strings.Contains(string(l.Raw), "request.expired") && !strings.Contains(string(l.Raw), "scripted:it") {
			t.Errorf("%s", l.Raw)
		}
	}
}

func TestAttack_I7_WhatAChannelSaysIsNotLogged(t *testing.T) {
	var mu sync.Mutex
	var buf bytes.Buffer
	told := make(chan struct{}, 100)
	e := executorOf(t, memory.NewRuns(nil), asking(nil, []string{"a"}, nil), func(c *executor.Config) {
		c.Log = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return buf.Write(b) }), nil))
		c.Desk.Notify = func(context.Context, string, desk.Notice) error {
			told <- struct{}{}
			return errors.New(`Post "https://hooks.example.com/services/T1/s3cr3t": connection refused`)
		}
	})
	waits(t, mustRun(t, e, scriptedStart()))
	e.Start()
	<-told
	<-told
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(buf.String(), "s3cr3t") {
		t.Errorf("I7: %s", buf.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// one grant that cannot be read stops all that is asked
func TestAttack_AGrantThatCannotBeReadDoesNotFailRuns(t *testing.T) {
	s := memory.NewRuns(nil)
	if err := s.Amend(t.Context(), "acme", store.Beside{Papers: []store.PaperChange{{Kind: "grant", ID: "grt_x", Body: []byte("?")}}}); err != nil {
		t.Fatal(err)
	}
	e := office(t, s, new(dropper), nil)
	outcome, err := e.Run(t.Context(), executor.Request{Account: "acme", StateKey: "d", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req", Wait: time.Second})
	if _, ok := outcome.(fermata.NeedsInput); !ok {
		t.Errorf("%#v, %v", outcome, err)
	}
}
