package executor_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// A rejection may have machine-readable codes. They are stored with the request and passed to the
// run.
func TestDecide_RejectionHasCodes(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		for _, bad := range []string{`{"verb":"approve","codes":["x"]}`, `{"verb":"reject","codes":[""]}`} {
			_, err := says(t, e, "bob", "bad", bad)
			if _, ok := errors.AsType[*fermata.AnswerError](err); !ok {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if _, err := says(t, e, "bob", "r1", `{"verb":"reject","codes":["too_big","no_copy"]}`); err != nil {
			t.Fatal(err)
		}
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.State != desk.StateDecided || !slices.Equal(doc.Decision.Codes, []string{"too_big", "no_copy"}) {
			t.Errorf("decision of the request: %+v, %v", doc.Decision, err)
		}
		answers, _, err := e.ListSettled(t.Context(), "acme", "", 10)
		if err != nil || len(answers) != 1 {
			t.Fatalf("answers %+v, %v", answers, err)
		}
		var said fermata.Decision
		if err := json.Unmarshal(answers[0].Answer, &said); err != nil || !slices.Equal(said.Codes, []string{"too_big", "no_copy"}) {
			t.Errorf("the run gets %s, %v", answers[0].Answer, err)
		}
	})
}
