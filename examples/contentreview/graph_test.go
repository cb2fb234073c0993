package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/storetest"
	"github.com/fermata-go/fermata/store/sqlite"
)

func TestQuestion_HasTheNamesThatReviewersExpect(t *testing.T) {
	data, err := json.Marshal(question(State{Draft: Draft{ID: "draft-1", Content: "text"}, Warnings: []string{"careful"}}))
	want := `{"reason":"Content ready for review","draft":{"id":"draft-1","content":"text"},"warnings":["careful"],"suggestedActions":[` +
		`{"id":"approve","label":"Approve \u0026 publish","action":"approve","isPrimary":true},` +
		`{"id":"revise","label":"Request changes","action":"revise"},{"id":"reject","label":"Reject","action":"reject"}]}`
	if err != nil || string(data) != want {
		t.Errorf("got  %s, %v\nwant %s", data, err, want)
	}
}

func TestVerdict_OnlyAClearAnswerIsOne(t *testing.T) {
	for answer, good := range map[string]bool{
		`{"action":"approve"}`:                          true,
		`{"action":"approve","feedback":"fine"}`:        true,
		`{"action":"approve","editedContent":"better"}`: true,
		`{"action":"revise","feedback":"shorter"}`:      true,
		`{"action":"reject"}`:                           true,
		`{"action":"reject","feedback":"off topic"}`:    true,
		`{}`:                                 false,
		`{"feedback":"shorter"}`:             false,
		`{"action":"Approve"}`:               false,
		`{"action":"approved"}`:              false,
		`{"action":"revise"}`:                false,
		`{"action":"revise","feedback":" "}`: false,
		`{"action":"revise","feedback":"x","editedContent":"y"}`: false,
		`{"action":"reject","editedContent":"y"}`:                false,
		`"approve"`: false,
	} {
		if _, err := Review.Check(nil, json.RawMessage(answer)); (err == nil) != good {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

func TestRoutes_OnlyAnApproveLeadsToFinalize(t *testing.T) {
	for _, s := range []State{
		{}, {Verdict: Verdict{Action: Reject}}, {Verdict: Verdict{Action: "nonsense"}},
		{Verdict: Verdict{Action: Approve}, Rejected: "for a reason"}, {Verdict: Verdict{Action: Revise}, Rejected: "limit"},
	} {
		if to := routeAfterReview(s); to != graph.End {
			t.Errorf("%+v leads to %s", s, to)
		}
	}
	if to := routeAfterReview(State{Verdict: Verdict{Action: Approve}}); to != "finalize" {
		t.Errorf("an approve leads to %s", to)
	}
}

// A text could try to show the reviewer something other than its content.
func TestVisible_ADraftCannotPaintTheScreen(t *testing.T) {
	shown := strings.Join(wrap("harmless\x1b[2J\x1b[1;1H \u202eevil\n\nend"), "|")
	if shown != "harmless\uFFFD[2J\uFFFD[1;1H \uFFFDevil||end" {
		t.Errorf("shown %q", shown)
	}
}

// crashAt starts a run in this process, approves it, and makes the store fail at its nth save. It
// reports whether that save was reached.
func crashAt(t *testing.T, dir string, n int, when storetest.FaultTime) bool {
	t.Helper()
	kept, err := sqlite.Open(filepath.Join(dir, "contentreview.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	flow, err := New()
	if err != nil {
		t.Fatal(err)
	}
	faulty := storetest.NewFaulty(kept)
	faulty.CrashSave(n, when)
	options := []graph.Option{graph.WithStore(faulty), graph.WithPolicy(Reviewed)}
	input := State{Topic: "tea", File: filepath.Join(dir, "published", "review-1.md")}
	_, err = flow.Run(t.Context(), input, append(options, graph.WithRun("review-1"))...)
	if info, waits := fermata.ExtractInterruptInfo(err); waits {
		_, err = flow.Resume(t.Context(), "review-1", append(options, graph.Answer(info.Interrupts[0].ID, Verdict{Action: Approve}))...)
	}
	if err != nil && !errors.Is(err, storetest.ErrCrashed) {
		t.Fatal(err)
	}
	return err != nil
}

func TestCrash_AtAnySaveTheNextProcessGoesOn(t *testing.T) {
	for when, name := range map[storetest.FaultTime]string{storetest.BeforeWrite: "before", storetest.AfterWrite: "after"} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			if !crashAt(t, dir, n, when) {
				if n < 5 {
					t.Errorf("only %d saves", n)
				}
				break
			}
			t.Run(fmt.Sprintf("%s save %d", name, n), func(t *testing.T) {
				p := start(t, dir, "-topic", "tea", "-run", "review-1")
				_, _ = io.WriteString(p.in, "a\n") // unused if the answer was already saved
				rest, code := p.end()
				if code != 0 || !strings.Contains(rest, "✓ Published") {
					t.Errorf("exit code %d after:\n%s", code, rest)
				}
				if text := published(t, dir, "review-1"); text != compose("tea", nil)+"\n" {
					t.Errorf("published:\n%s", text)
				}
				if trail := saved(t, dir, "review-1").State.Trail; len(trail) != 4 {
					t.Errorf("the trail is %v", trail)
				}
			})
		}
	}
}
