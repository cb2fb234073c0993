package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/gate"
)

func TestGate_RefusedGateRoutesBackwardWithTheReason(t *testing.T) {
	for _, verb := range []fermata.Verb{fermata.VerbReturn, fermata.VerbReject} {
		j := begin(t)
		j.answer(fermata.Refusal{Decision: fermata.Decision{Verb: verb, Reason: "name the risks", By: "ann", At: noon}})
		if _, question := j.open(); question.CurrentStatus != "design 2 name the risks" {
			t.Errorf("%s: waits with %+v, want the design again", verb, question)
		}
		want := []gate.Record{{Gate: "design_approval", At: noon, Feedback: "name the risks", By: "ann", Returned: verb == fermata.VerbReturn}}
		if got := j.saved().State.Decisions; !cmp.Equal(got, want) {
			t.Errorf("%s: trail %+v, want %+v", verb, got, want)
		}
	}
}
