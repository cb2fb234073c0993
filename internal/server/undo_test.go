package server_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
)

func TestUndo_VoteIsAcceptedAndCanBeWithdrawn(t *testing.T) {
	s := openDeskSiteWith(t, `
default: deny
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba", "group:owners"]}], deadline: 1h, undo: 10m}
`)
	var asked struct{ Interrupts []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.call("agent@acme", "POST", "/api/v1/ai/chat", startDrop).body), &asked); err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/requests/" + asked.Interrupts[0].ID
	const approve = `{"resumeId":"r1","answer":{"verb":"approve"}}`
	for range 2 { // the same decision again gets the same response
		got := s.call("bob@acme", "POST", path+"/decision", approve)
		var pending api.Pending
		if err := json.Unmarshal([]byte(got.body), &pending); err != nil || got.status != 202 || pending.EffectiveAt == nil || time.Until(*pending.EffectiveAt) > 10*time.Minute {
			t.Fatal(got, err)
		}
	}
	activity := s.activity("eve@acme", asked.Interrupts[0].ID).Activity
	if p := activity.Pending; p == nil || p.By != "bob" || p.Outcome != "approve" || activity.IneligibleReason != "decision_pending" || !strings.Contains(activity.Summary, "approved by bob, effective at ") {
		t.Fatalf("%+v", activity)
	}
	if got := s.call("eve@acme", "POST", path+"/decision", `{"resumeId":"r2","answer":{"verb":"reject","reason":"no"}}`); got.status != 409 || !strings.Contains(got.body, `"decision_pending"`) || !strings.Contains(got.body, "approved by bob") {
		t.Error(got)
	}
	if got := s.call("eve@acme", "POST", path+"/undo", `{}`); got.status != 403 {
		t.Error(got)
	}
	if got := s.call("bob@acme", "POST", path+"/undo", `{}`); got.status != 200 || strings.Contains(got.body, `"pending":{`) {
		t.Error(got)
	}
	if got := s.call("bob@acme", "POST", path+"/undo", `{}`); got.status != 409 || !strings.Contains(got.body, `"action_not_allowed"`) {
		t.Error(got)
	}
	if got := s.call("eve@acme", "POST", path+"/decision", `{"resumeId":"r3","answer":{"verb":"reject","reason":"no"}}`); got.status != 202 {
		t.Error(got)
	}
}
