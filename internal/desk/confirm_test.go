package desk_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

func typedSpec(pointers ...string) desk.RequestSpec {
	ask := actionSpec()
	ask.Requirement.Exclude, ask.Requirement.Editable, ask.Requirement.Confirm = nil, []string{""}, pointers
	return ask
}

func TestConfirm_ApproverTypesTheObject(t *testing.T) {
	w := open(t, typedSpec("/table"))
	if got := w.request.ConfirmText(dropArgs); got != "users" {
		t.Fatalf("text to type = %q", got)
	}
	from := w.from("ann")
	for _, typed := range []string{"", "user", "Users", "drop"} {
		from.Confirm = typed
		w.mustRefuse("not_confirmed", desk.Approve{From: from})
	}
	from.Confirm = " users "
	w.apply(desk.Approve{From: from})
	w.mustEnd(desk.OutcomeApproved, "ann")
}

// An edit is confirmed with the name of the edited object.
func TestConfirm_EditIsConfirmedWithItsOwnObject(t *testing.T) {
	w := open(t, typedSpec("/table"))
	edit := desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{"table":"logs","limit":100}`)}
	edit.Confirm = "users"
	w.mustRefuse("not_confirmed", edit)
	edit.Confirm = "logs"
	w.apply(edit)
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func TestConfirm_OnlyApprovalsAreTyped(t *testing.T) {
	w := open(t, typedSpec("/table"))
	w.apply(desk.Reject{From: w.from("ann"), Reason: "no"})
	w.mustEnd(desk.OutcomeRejected, "ann")
}

func TestConfirm_UndoWindowDoesNotReplaceIt(t *testing.T) {
	ask := typedSpec("/table")
	ask.Requirement.Undo = timespan.Duration(time.Minute)
	w := open(t, ask)
	from := w.from("ann")
	w.mustRefuse("not_confirmed", desk.Approve{From: from})
	from.Confirm = "users"
	w.apply(desk.Approve{From: from})
	if w.request.Pending == nil {
		t.Error("the decision is not pending")
	}
}

func TestConfirmText_OfArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args    string
		confirm []string
		masked  []string
		want    string
	}{
		"a number":                  {`{"order":9007199254740993}`, []string{"/order"}, nil, "9007199254740993"},
		"several values":            {`{"db":"prod","table":"users"}`, []string{"/db", "/gone", "/table"}, nil, "prod users"},
		"a member of a member":      {`{"to":{"name":"Blum"}}`, []string{"/to/name"}, nil, "Blum"},
		"without the argument":      {`{}`, []string{"/table"}, nil, "drop"},
		"without a masked value":    {`{"iban":"DE1"}`, []string{"/iban"}, []string{"/iban"}, "drop"},
		"without an invisible text": {`{"table":"us\u200bers"}`, []string{"/table"}, nil, "drop"},
		"without a list":            {`{"table":["users"]}`, []string{"/table"}, nil, "drop"},
		"a text that is too long":   {`{"db":"prod","table":"` + strings.Repeat("x", 101) + `"}`, []string{"/db", "/table"}, nil, "prod drop"},
		"a control character":       {`{"db":"prod","table":"us\ters"}`, []string{"/db", "/table"}, nil, "prod drop"},
		"an object":                 {`{"db":{"name":"prod"},"table":"users"}`, []string{"/db", "/table"}, nil, "drop users"},
		"an empty text":             {`{"db":"","table":"users"}`, []string{"/db", "/table"}, nil, "drop users"},
		"a masked value":            {`{"db":"prod","iban":"DE1"}`, []string{"/db", "/iban"}, []string{"/iban"}, "prod drop"},
		"two that cannot be typed":  {`{"db":null,"table":true,"host":"a"}`, []string{"/db", "/table", "/host"}, nil, "drop a"},
		"the same value twice":      {`{"db":"prod","table":"prod"}`, []string{"/db", "/table"}, nil, "prod prod"},
		"nothing":                   {`{"table":"users"}`, nil, nil, ""},
	} {
		r := desk.Request{Subject: desk.Subject{Action: "drop"}, Requirement: requirement.Requirement{Confirm: c.confirm, Sensitive: c.masked}}
		if got := r.ConfirmText(json.RawMessage(c.args)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A preview says what the decision would cause once it is confirmed.
func TestPreview_AssumesTheConfirmation(t *testing.T) {
	w := open(t, typedSpec("/table"))
	for _, c := range desk.Preview(w.request, w.from("ann").Actor, w.env()) {
		if c.Err != nil {
			t.Errorf("%s: %v", c.Verb, c.Err)
		}
	}
}

func TestRejectReasons_RejectionNeedsAKnownCode(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.RejectReasons = []string{"risk", "cost"}
	w := open(t, ask)
	w.mustRefuse("bad_value", desk.Reject{From: w.from("ann"), Reason: "no"})
	w.mustRefuse("bad_value", desk.Reject{From: w.from("ann"), Codes: []string{"other"}})
	w.apply(desk.Reject{From: w.from("ann"), Codes: []string{"cost"}})
	w.mustEnd(desk.OutcomeRejected, "ann")
	for _, c := range desk.Preview(open(t, ask).request, w.from("ann").Actor, w.env()) {
		if c.Err != nil {
			t.Errorf("%s: %v", c.Verb, c.Err)
		}
	}
}
