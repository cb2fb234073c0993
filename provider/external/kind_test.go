package external_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/tool"
)

// The author of a program may name a kind as they like.
var _ = fermata.NewKind[ticket, triage]("External test/Triage")

func TestKind_FromOutsideIsASafeName(t *testing.T) {
	for _, kind := range []string{"refund", "a", "content-review", "refund.v2", "refund_2", "approval-of-refund", "household", "External test/Triage", strings.Repeat("x", 128)} {
		input, err := json.Marshal(map[string]any{"kind": kind, "data": map[string]any{"title": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		if q := begin(t, newProvider(t, nil), string(input)).asks(); q.Kind != kind {
			t.Errorf("%q: %+v", kind, q)
		}
	}
	for kind, want := range map[string]string{
		"Refund":            "lower-case ASCII letters",
		"2refund":           "begin with a letter",
		"-refund":           "begin with a letter",
		".":                 "begin with a letter",
		"re fund":           "lower-case ASCII letters",
		"refund\u200b":      "lower-case ASCII letters",
		"аpproval":          "lower-case ASCII letters", // a Cyrillic letter
		"h\u200bold":        "kind hold",
		"refund/x":          "lower-case ASCII letters",
		"hold":              "kind hold",
		"Hold":              "kind hold",
		"h-old":             "kind hold",
		"HOLD_":             "kind hold",
		"approval-gate":     "kind approval-gate",
		"approval_gate":     "kind approval-gate",
		"ApprovalGate":      "kind approval-gate",
		"approval.gate":     "kind approval-gate",
		"effect-in-doubt":   "kind effect-in-doubt",
		"effect_in_doubt":   "kind effect-in-doubt",
		"tool-response":     "kind tool-response",
		"toolresponse":      "kind tool-response",
		"tool-follow-up":    "kind tool-follow-up",
		"tool-followup":     "kind tool-follow-up",
		"limit-reached":     "kind limit-reached",
		"Limit_Reached":     "kind limit-reached",
		"Approval":          "it looks like approval",
		"APPROVAL":          "it looks like approval",
		"appro-val":         "it looks like approval",
		"approval_":         "it looks like approval",
		"approval\u00a0":    "it looks like approval",
		"external-test\x00": "kind:",
	} {
		input, err := json.Marshal(map[string]any{"kind": kind, "data": map[string]any{"action": "drop", "args": map[string]any{}}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := begin(t, newProvider(t, nil), string(input)).execute()
		if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || failed.Code != "invalid_input" || !strings.Contains(failed.Message, want) {
			t.Errorf("%q: %#v, %v", kind, result, err)
		}
	}
}

// The kinds of other packages are rejected by name.
func TestKind_BuiltInOnesAreRejected(t *testing.T) {
	for _, kind := range []string{gate.Kind.Name(), graph.KindHold, tool.Response.Name(), tool.Completion.Name(), agent.OverLimit.Name(), fermata.EffectInDoubt.Name()} {
		err := newProvider(t, nil).CheckInput(t.Context(), "acme", "request", json.RawMessage(`{"kind":"`+kind+`","data":{}}`))
		if err == nil || !strings.Contains(err.Error(), "only Fermata itself") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
