package app

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/rulescmd"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/serve"
)

const twoRoutes = `
routes:
- name: day
  regions:
  - {name: ch, zone: Europe/Zurich, hours: [{days: [mon, tue, wed, thu, fri], from: "09:00", to: "18:00"}], channel: "slack:C0CH"}
  steps: [{at: 0s, notify: [region]}, {at: 7d, expire: stale}]
- name: night
  steps: [{at: 0s, notify: [inbox]}, {at: 2h, page: ["oncall:db"]}, {at: 12h, expire: stale}]
`

func TestRoutes_Check(t *testing.T) {
	writeFiles(t, map[string]string{
		"routes.yaml": twoRoutes,
		"inbox.yaml":  "routes:\n- name: night\n  steps: [{at: 0s, notify: [inbox, approvers]}, {at: 1h, remind: [\"group:dba\"]}, {at: 12h, expire: stale}]\n",
		"bad.yaml":    "routes:\n- {name: a, steps: [{at: 0s, notify: [nowhere]}]}\n- {name: a, steps: [{at: 1h, expire: stale}, {at: 0s, notify: [inbox]}]}\n",
	})
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"routes check inbox.yaml", cli.ExitOK, []string{"night", "3 steps", "ends 12h after creation", "inbox.yaml is valid"}},
		{"routes check routes.yaml", cli.ExitUsage, []string{
			`routes.yaml:5: routes[0].regions[0].channel: no channel of this server serves the target "slack:C0CH"; available: inbox, approvers, claimer, requester, group:…, user:…, role:… (in the inbox); page needs a channel`,
			`routes.yaml:8: routes[1].steps[1].page[0]: no channel of this server serves the target "oncall:db"`,
		}},
		{"routes check bad.yaml", cli.ExitUsage, []string{"bad.yaml", `unknown target "nowhere"`, "defined twice", "sort the steps by time"}},
		{"routes check none.yaml", cli.ExitUsage, []string{"none.yaml"}},
		{"routes simulate routes.yaml day --at 2026-11-14T12:00:00Z --zone UTC", cli.ExitOK, []string{"day, created on Sat 2026-11-14 12:00 UTC", "Mon 2026-11-16 08:00 UTC  +44h", "notify  slack:C0CH"}},
		{"routes simulate routes.yaml night --at 2026-11-14T12:00:00Z --zone Asia/Tokyo", cli.ExitOK, []string{"Sat 2026-11-14 23:00 JST  +2h       page    oncall:db"}},
		{"routes simulate routes.yaml dusk", cli.ExitUsage, []string{`no route "dusk"`}},
		{"routes simulate routes.yaml --at soon", cli.ExitUsage, []string{`"soon" is not a time`}},
		{"routes simulate routes.yaml --zone Nowhere", cli.ExitUsage, []string{"unknown time zone"}},
	} {
		code, out, errOut := call(t, strings.Fields(c.args)...)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(out+errOut, want) {
				t.Errorf("fermata %s: %d, no %q in\n%s%s", c.args, code, want, out, errOut)
			}
		}
	}
}

// A time without a zone is in the output zone.
func TestRoutesSimulate_UsesTheZone(t *testing.T) {
	writeFiles(t, map[string]string{"routes.yaml": twoRoutes})
	code, out, errOut := call(t, "routes", "simulate", "routes.yaml", "--at", "2026-11-16 23:00", "--zone", "Asia/Tokyo", "--json")
	var plans []rulescmd.PlanReport
	if err := json.Unmarshal([]byte(out), &plans); err != nil || code != cli.ExitOK || len(plans) != 2 {
		t.Fatal(code, out, errOut, err)
	}
	if got := plans[1].Plan[0].At.Format("15:04"); plans[1].Route != "night" || got != "14:00" {
		t.Errorf("%s begins at %s", plans[1].Route, got)
	}
}

// A program with its own channels serves every target.
func TestRoutes_CheckWithChannels(t *testing.T) {
	writeFiles(t, map[string]string{"routes.yaml": twoRoutes})
	p := &serve.Program{Program: &cli.Program{Out: new(strings.Builder)}, Channels: []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return nil })}}
	if err := (&rulescmd.RoutesCheck{File: "routes.yaml"}).Run(p); err != nil {
		t.Error(err)
	}
}

// A server does not start with a route that no channel serves, and the check of its configuration
// says so.
func TestServe_RejectsTargetsWithoutAChannel(t *testing.T) {
	writeFiles(t, map[string]string{"routes.yaml": twoRoutes, "fermata.yaml": "store: {url: \"sqlite:f.db\"}\ndesk: {routesFile: routes.yaml}\n"})
	for _, args := range [][]string{{"config", "check", "fermata.yaml"}, {"serve", "--config", "fermata.yaml"}} {
		code, out, errOut := call(t, args...)
		if code == cli.ExitOK || !strings.Contains(errOut, "desk.routesFile: routes.yaml:5: ") || !strings.Contains(errOut, `routes.yaml:8: routes[1].steps[1].page[0]: no channel of this server serves the target "oncall:db"`) {
			t.Errorf("%s: %d %s%s", args[0], code, out, errOut)
		}
	}
}
