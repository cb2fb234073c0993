package executor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// A restricted request is shown only to people who may see it. Channels, and people without this
// right, get a link: without arguments, people, rules and buttons.
func TestVisibility_ChannelsGetOnlyALinkToARestrictedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dm := &directMessages{kind: "dm"}
		groups := desk.StaticDirectory{"group:dba": {"ann", "bob", "req"}, "group:owners": {"ann", "eve", "req"}, "group:hr": {"eve"}}
		e := notifying(t, memory.NewStore(nil), dm, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, strings.Replace(twoPeople, "deadline: 1h", "deadline: 72h\n    visible_to: [\"group:hr\"]", 1))
			c.Desk.Directory = groups
			c.Desk.BaseURL = "https://fermata.example"
		}, desk.Step{Notify: []string{"dm:C0OPS", "approvers"}})
		for _, who := range []string{"ann", "bob", "eve"} {
			linkTo(t, e, "acme", who)
		}
		id := startAs(t, e, "req").Interrupts[0].ID
		e.StartWorkers()
		time.Sleep(time.Minute)
		if got := dm.got(desk.NoticeNotify); got != "C0OPS ann bob eve" {
			t.Fatalf("reached %q", got)
		}
		check := func(want map[string]bool) {
			t.Helper()
			seen := map[string]bool{}
			for _, m := range dm.all() {
				text, err := json.Marshal(m.card)
				if err != nil {
					t.Fatal(err)
				}
				seen[m.to] = strings.Contains(string(text), "users") // the argument; the last copy counts
				if !seen[m.to] && (m.card.Link == "" || m.card.Request != id || m.card.Actions != nil || strings.Contains(string(text), "drop") || strings.Contains(string(text), "dba") || strings.Contains(string(text), "ann")) {
					t.Errorf("the copy for %s: %s", m.to, text)
				}
			}
			for to, shown := range want {
				if seen[to] != shown {
					t.Errorf("%s sees the request: %t", to, seen[to])
				}
			}
		}
		check(map[string]bool{"C0OPS": false, "ann": true, "bob": true, "eve": true})
		groups["group:dba"] = []string{"ann", "req"} // bob leaves, and the request changes
		if _, err := e.Act(t.Context(), "acme", id, desk.Comment{From: by("ann"), Text: "drop users?"}); err != nil {
			t.Fatal(err)
		}
		withdraw(t, e)
		time.Sleep(time.Minute)
		check(map[string]bool{"C0OPS": false, "ann": true, "bob": false, "eve": true})
		for _, m := range dm.all() {
			if m.to == "C0OPS" && m.card.Outcome != "" && m.card.Outcome != "closed" {
				t.Errorf("the channel learns the outcome %q", m.card.Outcome)
			}
		}
	})
}
