package gate_test

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/gate"
)

// Every sequence of up to five decisions: a node runs only after its gate was approved, a rejection
// repeats only the node before its own gate, and the trail has each decision.
func TestSeed001_EverySequenceOfDecisionsPassesBothGatesInOrder(t *testing.T) {
	for length := 1; length <= 5; length++ {
		for bits := range 1 << length {
			j := begin(t)
			ran, at, approvals := []string{"design"}, 0, 0
			gates := []string{"design_approval", "dag_approval"}
			given := 0
			for ; given < length && approvals < 2; given++ {
				if _, question := j.open(); question.Gate != gates[at] {
					t.Fatalf("%0*b: decision %d is asked at %s, want %s", length, bits, given, question.Gate, gates[at])
				}
				approved := bits>>given&1 == 1
				signal := gate.Signal{Approved: approved, ApprovedAt: noon, ApprovedBy: "alice"}
				switch {
				case !approved && at == 0:
					ran = append(ran, "design")
				case !approved:
					ran = append(ran, "distill")
				case at == 0:
					ran, at, approvals = append(ran, "distill"), 1, 1
				default:
					ran, approvals = append(ran, "implement"), 2
				}
				j.answer(signal)
			}
			state := j.saved().State
			if !slices.Equal(state.Ran, ran) || len(state.Decisions) != given {
				t.Errorf("%0*b: ran %q with %d decisions, want %q with %d", length, bits, state.Ran, len(state.Decisions), ran, given)
			}
			if approvals < 2 && slices.Contains(state.Ran, "implement") {
				t.Errorf("%0*b: implemented after %d approvals", length, bits, approvals)
			}
		}
	}
}
