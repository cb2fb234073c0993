package tool_test

import (
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

func TestReturn_ReachesTheModelWithTheReason(t *testing.T) {
	var r railway
	for name, guarded := range map[string]*tool.Tool{"approve": tool.Approve(r.tool()), "respond": tool.Respond(r.tool())} {
		call := newRun(t, guarded, `{"to":"ORY"}`)
		_, err := call.start()
		back := fermata.Refusal{Decision: fermata.Decision{Verb: fermata.VerbReturn, Reason: "take the night train", By: "bob"}}
		got, err := call.answer(err, back)
		wantFailed(t, got, err, "book was returned for redesign by bob: take the night train", "propose something else")
		if len(r.booked) != 0 {
			t.Errorf("%s: it was booked anyway", name)
		}
	}
}
