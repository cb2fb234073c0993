package tui

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// held is a run that was stopped before a node, and shows its state.
func held() api.Request {
	r := request("int_hold", "nightly", "inproc:dataops", "hold", json.RawMessage(`{"table":"users","rows":9007199254740993,"done":[]}`), nil, nil)
	r.Address = "runnable:dataops;hold:before#drop_table"
	return r
}

// Nothing on the screen said that null lets a held run go on: there was a field for JSON, and the server refused whatever people tried.
func TestHold_ApproveContinuesUnchanged(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.sees("held before drop_table: {")
	b.keys("enter")
	b.sees("[a] approve", "[f] answer")
	b.keys("a")
	b.sees("The run goes on with this state, as it is.", "null")
	b.keys("y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != "null" {
		t.Errorf("sent %v", b.sends)
	}
}

func TestHold_AnswerIsTheEditedState(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.keys("enter", "f", "ctrl+k")
	b.types(`"customers"`)
	b.keys("ctrl+s", "y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"table":"customers","rows":9007199254740993,"done":[]}` {
		t.Errorf("sent %s", b.sends)
	}
}

// What an agent elsewhere calls a hold is its own question, and null may mean anything there.
func TestHold_OnlyGraphHoldsMatch(t *testing.T) {
	r := held()
	r.Address = "runnable:request"
	b := newHarness(t, 80, 24, r)
	b.keys("enter")
	b.seesNot("[a] approve")
}
