package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/store"
)

// needLangGraph installs LangGraph, as the program does. That takes seconds with a prebuilt
// better-sqlite3 binary, and a minute or two of compiling without; make test does it before the
// tests.
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
			db, err := newDatabase(t.Context(), name)
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

// newTestComparison returns a comparison without targets and without encryption.
func newTestComparison(t *testing.T, db database, work workload) *comparison {
	t.Helper()
	f := &comparison{database: db, workload: work, sealer: plainSealer{}, saveDelay: noSaveDelay}
	var err error
	if f.script, err = recordScript(t.Context(), db, f.sealer, work); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestScript_RecordsEveryTransaction(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		s := newTestComparison(t, db, reviewWorkload(randomText(kib))).script
		if _, ok := s.start[0].(createStep); !ok {
			t.Errorf("a start begins with %T", s.start[0])
		}
		if rested, ok := s.start[len(s.start)-1].(endStep); !ok || rested.end.Status != store.StatusWaiting {
			t.Errorf("a start ends with %T", s.start[len(s.start)-1])
		}
		if _, ok := s.decide[0].(decideStep); !ok {
			t.Errorf("a decision begins with %T", s.decide[0])
		}
		if rested, ok := s.decide[len(s.decide)-1].(endStep); !ok || rested.end.Status != store.StatusCompleted {
			t.Errorf("a decision ends with %T", s.decide[len(s.decide)-1])
		}
		if text := s.String(); !strings.Contains(text, fmt.Sprintf("start→wait: %d transactions", len(s.start))) {
			t.Errorf("its description is %s", text)
		}
	})
}

// A run needs two transactions until it waits and two until its end, for any number of steps: more
// would affect every row of the table.
func TestScript_TwoTransactionsPerOperation(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		for _, name := range []string{workloadReview, workloadChain} {
			if s := newTestComparison(t, db, newWorkload(name)).script; len(s.start) != 2 || len(s.decide) != 2 {
				t.Errorf("%s: %s", name, s)
			}
		}
	})
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
	l, err := newLangGraph(t.Context(), "sqlite", t.TempDir()+"/x.db", reviewWorkload("text"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.perform(langGraphOrder{Operation: "guess"}); err == nil || !strings.Contains(err.Error(), "nobody knows") {
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

func TestPercentile(t *testing.T) {
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(i+1))
	}
	if p50, p99 := percentile(values, 50), percentile(values, 99); p50 != 100 || p99 != 198 {
		t.Errorf("p50 is %d, p99 %d; want 100 and 198", p50, p99)
	}
	if percentile(values[:1], 99) != 1 || percentile(nil, 99) != 0 {
		t.Error("one value is its own percentile, and none has none")
	}
	if median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 2, 3}) != 2.5 || median(nil) != 0 {
		t.Error("the median is in the middle")
	}
}

func TestJudge_HoldGoals(t *testing.T) {
	report := holdReport{
		Rows: []holdRow{
			{Name: "hold/sqlite/1", Operation: opStart, Sides: map[string]holdSide{
				sideOurs: {PerSecond: []float64{40, 10, 400}}, sideRawSQL: {PerSecond: []float64{100, 100, 100}}, sideLangGraph: {PerSecond: []float64{2, 2, 2}},
			}},
			{Name: "hold/sqlite/1", Operation: opDecide, Sides: map[string]holdSide{
				sideOurs: {PerSecond: []float64{39, 39, 400}}, sideRawSQL: {PerSecond: []float64{100, 100, 100}}, sideLangGraph: {PerSecond: []float64{2, 2, 2}},
			}},
			{Name: "hold/sqlite/4", Operation: opStart, Sides: map[string]holdSide{sideOurs: {PerSecond: []float64{39}}}},
		},
		Sizes: []holdSizes{
			{Database: onSQLite, Workload: workloadReview, Bytes: map[string]holdSize{sideOurs: {Over: 20}, sideLangGraph: {Over: 100}}},
			{Database: onPostgres, Workload: workloadChain, Bytes: map[string]holdSize{sideOurs: {Over: 21}, sideLangGraph: {Over: 100}}},
		},
	}
	wantVerdicts(t, report.judge(false), map[string]string{
		"hold/sqlite/1, start: at least 40 % of raw SQL":                "met",
		"hold/sqlite/1, start: at least 20 × LangGraph":                 "met",
		"hold/sqlite/1, decide: at least 40 % of raw SQL":               "**NOT met**",
		"hold/sqlite/1, decide: at least 20 × LangGraph":                "**NOT met**",
		"hold/sqlite/4, start: at least 20 × LangGraph":                 "not judged",
		"hold/sqlite: at most 1/5 of LangGraph's bytes on disk":         "met",
		"hold/postgres/chain: at most 1/5 of LangGraph's bytes on disk": "**NOT met**",
	})
	if verdicts := report.judge(true); len(verdicts) != 0 {
		t.Errorf("a quick run was judged: %v", verdicts)
	}
}

func wantVerdicts(t *testing.T, verdicts []verdict, want map[string]string) {
	t.Helper()
	words := map[string]string{}
	for _, v := range verdicts {
		words[v.Goal] = v.word()
	}
	for goal, word := range want {
		if words[goal] != word {
			t.Errorf("%s: %q, want %q", goal, words[goal], word)
		}
	}
}
