package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
)

// testRecorder shows no progress.
func testRecorder() *recorder { return &recorder{progress: io.Discard} }

// needLangGraph installs LangGraph, as the program does.
func needLangGraph(t *testing.T) {
	t.Helper()
	if err := installLangGraph(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
}

// onEachDatabase runs a test on SQLite and on PostgreSQL.
func onEachDatabase(t *testing.T, test func(t *testing.T, db database)) {
	for _, name := range []string{onSQLite, onPostgres} {
		t.Run(name, func(t *testing.T) {
			db, err := newDatabase(t.Context(), name, testRecorder())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := db.close(); err != nil {
					t.Error(err)
				}
			}()
			test(t, db)
		})
	}
}

// stubKeeper records its calls.
type stubKeeper struct {
	decided chan string
	fails   string
}

func (s *stubKeeper) start(context.Context, string) error { return nil }

func (s *stubKeeper) decide(_ context.Context, key string) error {
	if key == s.fails {
		return errors.New("test failure")
	}
	s.decided <- key
	return nil
}

func (s *stubKeeper) close() error { return nil }

func TestCallers_DecideEveryRunOnce(t *testing.T) {
	s := &stubKeeper{decided: make(chan string, 100)}
	c := &callerPool{runKeeper: s}
	started, err := c.starts(t.Context(), 4, loadSpec{minRuns: 10})
	if err != nil || len(started.latencies) != 10 {
		t.Fatalf("%d runs were started, %v; want 10", len(started.latencies), err)
	}
	decided, err := c.decides(t.Context(), 4)
	if err != nil || len(decided.latencies) != 10 {
		t.Fatalf("%d runs were decided, %v; want 10", len(decided.latencies), err)
	}
	close(s.decided)
	seen := map[string]bool{}
	for key := range s.decided {
		seen[key] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d different runs were decided, want 10", len(seen))
	}
}

func TestCallers_WrongResultIsAnError(t *testing.T) {
	c := &callerPool{runKeeper: &stubKeeper{decided: make(chan string, 100), fails: "key-3"}}
	if _, err := c.starts(t.Context(), 2, loadSpec{minRuns: 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.decides(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "key-3") {
		t.Errorf("the error is %v", err)
	}
}

func TestReview_WrongOutcomesAreErrors(t *testing.T) {
	asked := func(data string) fermata.Outcome {
		return fermata.NeedsInput{Interrupts: []fermata.OpenInterrupt{{Envelope: fermata.Envelope{Data: []byte(data)}}}}
	}
	ended := func(output string) fermata.Outcome { return fermata.Completed{Output: []byte(output)} }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"it asks":         {checkAsked(asked(`"text"`), "text"), true},
		"another text":    {checkAsked(asked(`"other"`), "text"), false},
		"nothing asked":   {checkAsked(fermata.NeedsInput{}, "text"), false},
		"ended too early": {checkAsked(fermata.Completed{}, "text"), false},
		"it ends":         {checkPublished(ended(`{"topic":"tea","text":"text","verdict":"approve","status":"published"}`), "text"), true},
		"text lost":       {checkPublished(ended(`{"topic":"tea","verdict":"approve","status":"published"}`), "text"), false},
		"dropped":         {checkPublished(ended(`{"topic":"tea","text":"text","verdict":"approve","status":"dropped"}`), "text"), false},
		"asks again":      {checkPublished(asked(`"text"`), "text"), false},
		"it failed":       {checkPublished(fermata.Failed{}, "text"), false},
		"failed at start": {checkAsked(fermata.Failed{}, "text"), false},
		"no JSON output":  {checkPublished(ended(`{`), "text"), false},
		"ten messages":    {checkChain(ended(chainResult(reviewVerdict, "0123456789")), "0123456789"), true},
		"one differs":     {checkChain(ended(chainResult(reviewVerdict, "0123456780")), "0123456789"), false},
		"one lost":        {checkChain(ended(chainResult(reviewVerdict, "012345678")), "0123456789"), false},
		"not approved":    {checkChain(ended(chainResult("drop", "0123456789")), "0123456789"), false},
	} {
		if (test.err == nil) != test.want {
			t.Errorf("%s: %v", name, test.err)
		}
	}
}

// chainResult is the final state of a chain whose messages have one letter each.
func chainResult(verdict, letters string) string {
	state := conversation{Topic: "tea", Verdict: verdict}
	for _, letter := range letters {
		state.Messages = append(state.Messages, message{Role: "assistant", Content: string(letter)})
	}
	text, _ := json.Marshal(state) // only strings
	return string(text)
}

// The process ends with its error if the result is wrong: see the last lines of
// langgraph/pieces.mjs.
func TestLangGraph_InvalidOrderIsAnError(t *testing.T) {
	needLangGraph(t)
	db, err := newDatabase(t.Context(), onPostgres, testRecorder())
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	place, err := db.create()
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLangGraph(t.Context(), onPostgres, place, reviewWorkload("text"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.perform(langGraphOrder{Operation: "guess"}); err == nil || !strings.Contains(err.Error(), "unknown order") {
		t.Errorf("the error is %v", err)
	}
	if _, err := newLangGraph(t.Context(), "oracle", "", reviewWorkload("text")); err == nil || !strings.Contains(err.Error(), "no saver is called oracle") {
		t.Errorf("the error is %v", err)
	}
}

func TestHost_FatalBecomesAnError(t *testing.T) {
	h := &testHost{}
	left := false
	h.Cleanup(func() { left = true })
	if err := h.try(func() { h.Fatalf("no %s", "server") }); err == nil || err.Error() != "no server" {
		t.Errorf("the error is %v", err)
	}
	if err := h.try(func() {}); err != nil {
		t.Error(err)
	}
	h.Error("it did not stop")
	if err := h.cleanup(); err == nil || !left {
		t.Errorf("the final error is %v, and cleanup ran: %t", err, left)
	}
}
