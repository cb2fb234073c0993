package executor_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// The server records what was on the screen, and a decision that names it proves it.
func TestI12_DecisionNamesWhatWasOnTheScreen(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Desk.Policy = loadRules(t, oneDBA) })
		asked := startAs(t, e, "req").Interrupts[0].ID
		doc, err := e.RequestDocument(t.Context(), "acme", asked)
		if err != nil {
			t.Fatal(err)
		}
		text := "drop-table\nArguments\n  users"
		screen := desk.Rendering{Hash: desk.RenderingHash(text), Channel: "terminal", Template: "inbox@1", Visible: desk.VisiblePart, Text: text}
		for range 2 { // reported twice
			if _, err := e.RecordRendering(t.Context(), "acme", asked, by("bob"), doc.Digest(), screen); err != nil {
				t.Fatal(err)
			}
		}
		screen.Visible = desk.VisibleAll
		if doc, err = e.RecordRendering(t.Context(), "acme", asked, by("bob"), doc.Digest(), screen); err != nil || len(doc.Renderings) != 2 {
			t.Fatalf("%+v, %v", doc.Renderings, err)
		}
		if last := doc.Renderings[1]; last.By != "bob" || last.At.IsZero() || last.Shown != doc.Digest() || last.Hash != screen.Hash {
			t.Errorf("rendering %+v", last)
		}
		shown := recorded[audit.RequestRendered](t, s)
		if len(shown) != 2 || shown[0].Shown.Visible != audit.VisiblePart || shown[1].Shown.Visible != audit.VisibleAll || shown[1].Shown.Template != "inbox@1" || shown[1].Shown.Surface != "terminal" || shown[1].Shown.Screen == (audit.Digest{}) {
			t.Fatalf("renderings in the log: %+v", shown)
		}
		run, err := s.Get(t.Context(), "acme", "drop-1")
		if err != nil {
			t.Fatal(err)
		}
		texts := func() []store.Document {
			kept, err := s.Documents(t.Context(), "acme", docs.RenderingKind, store.DocumentFilter{Run: run.ID})
			if err != nil {
				t.Fatal(err)
			}
			return kept
		}
		if kept := texts(); len(kept) != 1 || kept[0].ID != docs.RenderingID(asked, shown[0].Shown.Screen.Sum) || strings.Contains(string(kept[0].Body), "users") {
			t.Errorf("kept texts: %+v", kept)
		}

		request := word("bob", "drop-1", "r1", asked, yes)
		decide := func(rendering string) error {
			request.Targets[asked] = executor.Answer{Value: json.RawMessage(yes), Shown: doc.Digest(), Rendering: rendering}
			_, err := e.Run(t.Context(), request)
			return err
		}
		if err := decide(desk.RenderingHash("something else")); !errors.Is(err, desk.ErrChanged) {
			t.Fatalf("a rendering that was not recorded: %v", err)
		}
		if len(recorded[audit.RequestDecided](t, s)) != 0 {
			t.Fatal("it was decided")
		}
		request.ResumeID = "r2"
		if err := decide(screen.Hash); err != nil {
			t.Fatal(err)
		}
		if err := decide(""); err != nil {
			t.Errorf("I3: a repetition without the rendering: %v", err)
		}
		votes := recorded[audit.RequestDecided](t, s)
		if len(votes) != 1 || votes[0].Shown.Screen != shown[1].Shown.Screen || votes[0].Shown.Template != "inbox@1" || votes[0].Shown.Visible != audit.VisibleAll || !votes[0].Shown.At.Equal(shown[1].Shown.At.Time) ||
			votes[0].Shown.Rendered != shown[1].Shown.Rendered || !votes[0].Timing.Decided.After(votes[0].Shown.At.Add(-1)) {
			t.Errorf("decision: %+v", votes)
		}
		if err := s.DeleteRun(t.Context(), "acme", run.ID, store.Writes{}); err != nil || len(texts()) != 0 {
			t.Errorf("%d texts outlive the run, %v", len(texts()), err)
		}
	})
}
