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
	return worded(r)
}

func TestHold_ApproveContinuesUnchanged(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.sees("Drop table")
	b.keys("enter")
	b.sees("dataops is held before drop table", "[a] approve", "[e] approve with edits", "[r] reject")
	b.keys("a")
	b.sees("The run continues with this state, unchanged.")
	b.keys("y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"verb":"approve"}` {
		t.Errorf("sent %v", b.sends)
	}
}

func TestHold_EditsAreApproved(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.keys("enter", "e", "ctrl+u")
	b.types(`"customers"`)
	b.keys("ctrl+s", "y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"verb":"approve","args":{"table":"customers","rows":9007199254740993,"done":[]}}` {
		t.Errorf("sent %s", b.sends)
	}
}

func TestHold_RejectSaysWhy(t *testing.T) {
	b := newHarness(t, 80, 24, held())
	b.keys("enter", "r", "ctrl+s")
	b.sees("required")
	b.types("too early")
	b.keys("ctrl+s")
	b.sees("The run does not continue here")
	b.keys("y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"verb":"reject","reason":"too early"}` {
		t.Errorf("sent %s", b.sends)
	}
}

func TestGate_IsApprovedAndRejected(t *testing.T) {
	gate := func() api.Request {
		return request("int_gate", "nightly", "inproc:pipeline", "approval-gate", json.RawMessage(`{"gate":"design","message":"Review the design","currentStatus":"two services"}`),
			json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"}},"required":["approved"],"additionalProperties":false}`), nil)
	}
	b := newHarness(t, 80, 24, gate())
	b.sees("Review the design")
	b.keys("enter", "a", "y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"verb":"approve"}` {
		t.Errorf("sent %s", b.sends)
	}
	b = newHarness(t, 80, 24, gate())
	b.keys("enter", "r")
	b.types("no queue")
	b.keys("ctrl+s", "y")
	if len(b.sends) != 1 || string(b.sends[0].Answer) != `{"verb":"reject","reason":"no queue"}` {
		t.Errorf("sent %s", b.sends)
	}
}
