package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

func TestNotifications_PersonChangesTheirOwn(t *testing.T) {
	s := open(t, nil)
	const path = "/api/v1/me/notifications"
	if got := s.call("approver@acme", "GET", path, ""); got.status != 200 || !strings.Contains(got.body, `"addresses":[]`) || !strings.Contains(got.body, `"channels":[]`) {
		t.Fatalf("the defaults: %d %s", got.status, got.body)
	}
	const settings = `{"rules":[{"notices":["remind"],"minRisk":2,"channels":["slack"]}],` +
		`"quiet":{"zone":"Europe/Zurich","days":["sat","sun"],"from":"22:00","to":"07:00","urgentRisk":3},` +
		`"away":{"from":"2026-12-24T00:00:00Z","until":"2027-01-02T00:00:00Z","delegate":"bob"}}`
	if got := s.call("approver@acme", "PUT", path, settings); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	got := s.call("approver@acme", "GET", path, "")
	var n api.Notifications
	if err := json.Unmarshal([]byte(got.body), &n); err != nil {
		t.Fatal(err)
	}
	if saved, err := json.Marshal(n.SaveNotifications); err != nil || string(saved) != settings {
		t.Errorf("saved %s, %v", saved, err)
	}
	for body, want := range map[string]string{
		`{"rules":[{"notices":["rerender"],"channels":[]}]}`:                                                                 "notices",
		`{"quiet":{"zone":"Mars","from":"22:00","to":"07:00"}}`:                                                              "Mars",
		`{"quiet":{"zone":"UTC","from":"22","to":"07:00"}}`:                                                                  "from",
		`{"away":{"from":"2026-12-24T00:00:00Z","until":"2026-12-01T00:00:00Z"}}`:                                            "later end",
		`{"away":{"from":"2026-12-24T00:00:00Z","until":"2027-12-01T00:00:00Z","delegate":"` + n.Away.Delegate + `","x":1}}`: "x",
	} {
		if got := s.call("approver@acme", "PUT", path, body); got.status != 400 && got.status != 422 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, other := range []string{"approver@other", "auditor@acme"} {
		if got := s.call(other, "GET", path, ""); got.status != 200 || strings.Contains(got.body, "bob") {
			t.Errorf("I8: %s sees %s", other, got.body)
		}
	}
	if got := s.call("agent@acme", "GET", path, ""); got.status != 403 {
		t.Errorf("an agent: %d", got.status)
	}
	if got := s.call("approver@acme", "PUT", path, `{}`); got.status != 200 || strings.Contains(got.body, "bob") {
		t.Errorf("removed: %d %s", got.status, got.body)
	}
}
