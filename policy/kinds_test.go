package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/policy"
)

func TestInputOfRequest_DescribesEveryKind(t *testing.T) {
	address := fermata.Address{
		{Type: fermata.SegmentRunnable, ID: "ops"}, {Type: fermata.SegmentNode, ID: "plan"}, {Type: fermata.SegmentAgent, ID: "helper"},
		{Type: fermata.SegmentTool, ID: "book"},
	}
	hold := fermata.Address{{Type: fermata.SegmentRunnable, ID: "ops"}, {Type: fermata.SegmentHold, ID: "before", SubID: "drop"}}
	for _, c := range []struct {
		name     string
		address  fermata.Address
		question fermata.Envelope
		when     string
	}{
		{"action", address, fermata.Envelope{Kind: "approval", Data: json.RawMessage(`{"action":"refund","args":{"cents":5},"digest":""}`)},
			`req.kind == "approval" && req.tool == "refund" && args.cents == 5 && data == {}`},
		{"effect in doubt", address, fermata.Envelope{Kind: "effect-in-doubt", Data: json.RawMessage(`{"action":"refund","args":{"cents":5}}`)},
			`req.kind == "effect-in-doubt" && req.tool == "refund" && args.cents == 5`},
		{"gate", address, fermata.Envelope{Kind: "approval-gate", Data: json.RawMessage(`{"gate":"design","message":"m","currentStatus":"s"}`)},
			`req.kind == "approval-gate" && req.gate == "design" && req.node == "plan" && data.currentStatus == "s" && args == {}`},
		{"hold", hold, fermata.Envelope{Kind: "hold", Data: json.RawMessage(`{"table":"users"}`)},
			`req.kind == "hold" && req.node == "drop" && req.graph == "ops" && data.table == "users"`},
		{"question of a tool", address, fermata.Envelope{Kind: "tool-response", Data: json.RawMessage(`{"question":"?"}`)},
			`req.kind == "tool-response" && req.tool == "book" && req.agent == "helper" && req.cost == 0`},
		{"question that shows a text", address, fermata.Envelope{Kind: "note", Data: json.RawMessage(`"hello"`)},
			`req.kind == "note" && data == "hello"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := policy.InputOfRequest("r-1", c.address, c.question)
			if err != nil {
				t.Fatal(err)
			}
			set, err := policy.Load("policy.yaml", []byte("default: allow\nrules:\n- id: it\n  when: '"+c.when+"'\n  then: deny\n"), policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Decide(in)
			if err != nil || d.Verdict != policy.Deny || d.Trace[0].Outcome != policy.RuleHit {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}
