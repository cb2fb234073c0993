package server_test

import (
	"strings"
	"testing"
)

// An external agent declares the answer at the deadline, for rules that use it.
func TestCreateRequest_DefaultAnswer(t *testing.T) {
	s := openDeskSiteWith(t, "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, on_timeout: default}}\nrules: []\n")
	create := func(key, fields string) answer {
		return s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"`+key+`",`+fields+`}`)
	}
	if got := create("a", `"kind":"ticket","data":{"n":1},"answerSchema":{"type":"object","required":["n"]},"defaultAnswer":{"n":2}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	doc, err := s.e.RequestDocument(t.Context(), "acme", s.openRequests("acme")[0].ID)
	if err != nil || string(doc.DefaultAnswer) != `{"n":2}` {
		t.Errorf("%s, %v", doc.DefaultAnswer, err)
	}
	for name, fields := range map[string]string{
		"another schema": `"kind":"ticket","data":{"n":1},"answerSchema":{"type":"object","required":["n"]},"defaultAnswer":{}`,
		"of an approval": `"kind":"approval","data":{"action":"drop","args":{}},"defaultAnswer":{"verb":"approve"}`,
	} {
		if got := create(name, fields); got.status != 400 || got.field("code") != "invalid_input" || !strings.Contains(got.body, "defaultAnswer") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
