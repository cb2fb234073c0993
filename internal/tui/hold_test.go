package tui

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// held is a run held before a node, which shows its state.
func held() api.Request {
	r := request("int_hold", "nightly", "inproc:dataops", "hold", json.RawMessage(`{"table":"users","rows":9007199254740993,"done":[]}`), nil, nil)
	r.Address = "runnable:dataops;hold:before#drop_table"
	return r
}

// Nothing on the screen used to say that null continues a held run.
func TestHold_ApproveContinuesUnchanged(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.sees("held before drop_table: {")
	b.keys("enter")
	b.sees("[a] approve", "[f] answer")
	b.keys("a")
	b.sees("The run continues with this state, unchanged.", "null")
	b.keys("y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != "null" {
		t.Errorf("sent %v", b.sends)
	}
}

func TestHold_AnswerIsTheEditedState(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.keys("enter", "f", "ctrl+u")
	b.types(`"customers"`)
	b.keys("ctrl+s", "y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"table":"customers","rows":9007199254740993,"done":[]}` {
		t.Errorf("sent %s", b.sends)
	}
}

// A request of an external agent named hold is not a hold, and null may have another meaning.
func TestHold_OnlyGraphHoldsMatch(t *testing.T) {
	r := held()
	r.Address = "runnable:request"
	b := newHarness(t, 80, 24, r)
	b.keys("enter")
	b.seesNot("[a] approve")
}
