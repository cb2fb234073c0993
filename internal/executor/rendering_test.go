package executor_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
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
		screen := desk.Rendering{Hash: desk.RenderingHash(text), Channel: "terminal", Template: "inbox@1", Clipped: true}
		for range 2 { // reported twice
			if _, err := e.RecordRendering(t.Context(), "acme", asked, by("bob"), doc.Digest(), screen); err != nil {
				t.Fatal(err)
			}
		}
		screen.Clipped = false
		if doc, err = e.RecordRendering(t.Context(), "acme", asked, by("bob"), doc.Digest(), screen); err != nil || len(doc.Renderings) != 2 {
			t.Fatalf("%+v, %v", doc.Renderings, err)
		}
		if last := doc.Renderings[1]; last.By != "bob" || last.At.IsZero() || last.Shown != doc.Digest() || last.Hash != screen.Hash {
			t.Errorf("rendering %+v", last)
		}
		shown := recorded[audit.RequestRendered](t, s)
		if len(shown) != 2 || !shown[0].Shown.Clipped || shown[1].Shown.Clipped || shown[1].Shown.Template != "inbox@1" || shown[1].Shown.Surface != "terminal" || shown[1].Shown.Screen == (audit.Digest{}) {
			t.Fatalf("renderings in the log: %+v", shown)
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
		if len(votes) != 1 || votes[0].Shown.Screen != shown[1].Shown.Screen || votes[0].Shown.Template != "inbox@1" || votes[0].Shown.Clipped || !votes[0].Shown.At.Equal(shown[1].Shown.At.Time) ||
			votes[0].Shown.Rendered != shown[1].Shown.Rendered || !votes[0].Timing.Decided.After(votes[0].Shown.At.Add(-1)) {
			t.Errorf("decision: %+v", votes)
		}
	})
}
