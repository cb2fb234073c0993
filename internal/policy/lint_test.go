package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

const noAsk = "default: deny\nrules:\n"

func TestLint(t *testing.T) {
	lintContext := policy.LintContext{
		Directory:  staticDirectory{"group:oncall": {"ann", "bob"}, "group:empty": {}, "group:devs": {"carl", "dora"}, "group:one": {"carl"}, "user:ann": {"ann"}, "user:bob": {"bob"}},
		Requesters: []string{"carl", "dora", "emil"},
		Tools: map[string]policy.Tool{
			"db":   {Effects: true, ArgsSchema: json.RawMessage(`{"type":"object","properties":{"sql":{"type":"string"},"opts":{"type":"object","properties":{"limit":{"type":"integer"}}},"a/b":{}}}`)},
			"read": {},
			"free": {Effects: true},
		},
		CheckRoute: func(name string) string {
			return map[string]string{"night": "region apac never opens", "gone": "unknown"}[name]
		},
		WidensTo: func(name string) []string { return map[string][]string{"up": {"group:devs"}}[name] },
		Channels: func(name string) []string { return map[string][]string{"default": {"slack:#ops"}}[name] },
	}
	ask := func(more string) string {
		return noAsk + "- {id: a, when: 'req.tool == \"db\"', then: ask, ask: {deadline: 1h, " + more + "}}\n"
	}
	for name, c := range map[string]struct{ doc, want string }{
		"nothing wrong":         {ask("groups: [{from: ['group:oncall']}], route: day, editable: [/sql, /opts/limit, /a~1b], sensitive: [/sql], visible_to: [requester, 'group:oncall']"), ""},
		"empty group":           {ask("groups: [{from: ['group:empty']}]"), `p.yaml:3: rule "a": group:empty has no members`},
		"group gone":            {ask("groups: [{from: ['group:gone']}]"), `unknown name group:gone`},
		"group shrunk":          {ask("groups: [{from: ['group:oncall'], count: 3}]"), `3 people are required, but only 2 are in group:oncall`},
		"too few to refuse":     {ask("groups: [{from: ['group:oncall']}], deny_count: 3"), `p.yaml:3: rule "a": 3 rejections are required, but only 2 people are asked`},
		"refused by others":     {ask("groups: [{from: ['group:oncall'], widen: ['group:one']}], deny_count: 3"), ""},
		"refused by anyone":     {ask("groups: [{from: [anyone]}], deny_count: 3"), ""},
		"too few together":      {ask("groups: [{from: ['group:oncall']}, {from: ['user:ann']}, {from: ['user:bob', 'user:ann']}]"), `p.yaml:3: rule "a": 3 different people are required, but the groups have only 2 together`},
		"enough with others":    {ask("groups: [{from: ['group:oncall'], widen: ['group:one']}, {from: ['user:ann']}, {from: ['user:bob', 'user:ann']}]"), ""},
		"default's group":       {"default: ask\ndefaults: {ask: {groups: [{from: ['group:empty']}], deadline: 1h}}\n", `p.yaml:1: group:empty has no members`},
		"approve their own":     {ask("groups: [{from: ['group:devs']}]"), `everyone in group:devs is also a requester, and may approve their own requests`},
		"approve one another":   {ask("groups: [{from: ['group:devs']}], separation_of_duties: [requester]"), `everyone in group:devs is also a requester: they approve each other's requests`},
		"no approver left":      {ask("groups: [{from: ['group:one']}], separation_of_duties: [requester]"), `too few people are left to approve their own requests`},
		"region never opens":    {ask("groups: [{from: ['group:oncall']}], route: night"), `route "night": region apac never opens`},
		"widened in vain":       {ask("groups: [{from: ['group:oncall']}], route: up"), `route "up" widens to group:devs, but no group permits it`},
		"widened":               {ask("groups: [{from: ['group:oncall'], widen: ['group:devs']}], route: up"), ""},
		"widened to a name":     {ask("groups: [{from: ['group:oncall'], widen: ['group:d${req.graph}']}], route: up"), ""},
		"widened by no step":    {ask("groups: [{from: ['group:oncall'], widen: ['group:devs', 'group:one']}], route: up"), `group:one is never added: no step of up widens to it`},
		"widened to one gone":   {ask("groups: [{from: ['group:oncall'], widen: ['group:gone']}]"), `unknown name group:gone`},
		"route gone":            {ask("groups: [{from: ['group:oncall']}], route: gone"), `route "gone": unknown`},
		"edit of no argument":   {ask("groups: [{from: ['group:oncall']}], editable: [/sqll]"), `db has no argument "/sqll"; did you mean "sql"?`},
		"mask of no argument":   {ask("groups: [{from: ['group:oncall']}], sensitive: [/limit]"), `db has no argument "/limit"`},
		"typed of no argument":  {ask("groups: [{from: ['group:oncall']}], confirm: [/table]"), `db has no argument "/table"`},
		"hidden from approvers": {ask("groups: [{from: ['group:oncall']}], visible_to: ['group:one'], route: day"), `no one in group:oncall can see the request: visible_to is group:one`},
		"restricted, public":    {ask("groups: [{from: ['group:oncall']}], visible_to: ['group:oncall']"), `route "default" sends to slack:#ops: with visible_to, its readers get only a link`},
		"visible to one gone":   {ask("groups: [{from: ['group:oncall']}], visible_to: ['group:gone'], route: day"), `unknown name group:gone`},
		"no such argument":      {noAsk + "- {id: a, when: 'req.tool == \"db\" && args.sq == \"\"', then: deny}\n", `p.yaml:3: rule "a": db has no argument "/sq"; did you mean "sql"?`},
		"none below":            {noAsk + "- {id: a, when: 'req.tool == \"db\" && args.opts[\"limt\"] > 3', then: deny}\n", `db has no argument "/opts/limt"; did you mean "limit"?`},
		"none, optionally":      {noAsk + "- {id: a, when: 'req.tool == \"db\" && args[?\"sqk\"].orValue(\"\") == \"\"', then: deny}\n", `db has no argument "/sqk"`},
		"none, asked for":       {noAsk + "- {id: a, when: 'req.tool == \"db\" && has(args.sqk)', then: deny}\n", `db has no argument "/sqk"`},
		"below a text":          {noAsk + "- {id: a, when: 'req.tool == \"db\" && args.sql.size() > 3', then: deny}\n", ``},
		"no schema":             {noAsk + "- {id: a, when: 'req.tool == \"free\" && args.x == 1', then: deny}\n", ``},
		"any tool":              {noAsk + "- {id: a, when: 'args.whatever == 1', then: deny}\n", ``},
		"no such tool":          {noAsk + "- {id: a, when: 'req.tool == \"reed\"', then: deny}\n", `unknown tool "reed"; did you mean "read"?`},
		"allows anything":       {noAsk + "- {id: a, when: 'req.tool == \"db\" && req.environment == \"dev\"', then: allow}\n", `allows db with any arguments, although it has effects`},
		"allows all tools":      {noAsk + "- {id: a, when: 'req.environment == \"dev\"', then: allow}\n", `allows db, free with any arguments`},
		"allows by argument":    {noAsk + "- {id: a, when: 'req.tool == \"db\" && args.sql == \"select 1\"', then: allow}\n", ``},
		"allows reading":        {noAsk + "- {id: a, when: 'req.tool == \"read\"', then: allow}\n", ``},
		"allows by effect":      {noAsk + "- {id: a, when: 'req.effects.size() == 0', then: allow}\n", ``},
		"allows a rated tool":   {"tools: {read: {effects: [write]}}\n" + noAsk + "- {id: a, when: 'req.tool == \"read\"', then: allow}\n", `allows read with any arguments`},
		"allows by its rating":  {"tools: {read: {effects: [write], risk: 0}}\n" + noAsk + "- {id: a, when: 'req.tool == \"read\" && req.risk == 0', then: allow}\n", ``},
		"rates no tool":         {"tools: {reed: {risk: 1}, '*': {risk: 3}}\n" + noAsk + "- {id: a, when: 'req.risk > 1', then: deny}\n", `p.yaml:1: unknown tool "reed"; did you mean "read"?`},
		"never hits":            {noAsk + "- {id: a, when: 'req.tool == \"db\" && req.tool == \"read\"', then: deny}\n", `this rule never matches`},
		"never hits at all":     {noAsk + "- {id: a, when: 'false', then: allow}\n", `this rule never matches`},
		"shadowed":              {noAsk + "- {id: all, when: 'req.tool == \"read\"', then: deny}\n- {id: a, when: 'args.x == 1 && req.tool == \"read\"', then: allow}\n", `p.yaml:4: rule "a": shadowed by "all" in line 3`},
		"shadowed by a later":   {noAsk + "- {id: a, when: 'req.tool == \"read\"', then: allow}\n- {id: all, when: 'true', then: deny}\n", `p.yaml:3: rule "a": shadowed by "all" in line 4`},
		"not by a dry run":      {noAsk + "- {id: all, when: 'true', then: deny, mode: dry_run}\n- {id: a, when: 'req.tool == \"read\"', then: allow}\n", ``},
		"not by a limit":        {noAsk + "- {id: all, when: 'true', then: deny, limit: {max: 1, window: 1h}}\n- {id: a, when: 'req.tool == \"read\"', then: allow}\n", ``},
		"not by a milder":       {noAsk + "- {id: all, when: 'req.tool == \"read\"', then: allow}\n- {id: a, when: 'args.x == 1 && req.tool == \"read\"', then: deny}\n", ``},
		"the same, said twice":  {noAsk + "- {id: b, when: 'req.tool == \"read\" && args.x == 1', then: deny}\n- {id: a, when: 'args.x == 1 && req.tool == \"read\"', then: deny}\n", `rule "a": same condition and verdict as "b" in line 3`},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Load("p.yaml", []byte(c.doc), policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			found := set.Lint(lintContext)
			switch {
			case c.want == "" && len(found) > 0:
				t.Errorf("found %v", found)
			case c.want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), c.want)):
				t.Errorf("found %v\nwant  %s", found, c.want)
			}
			if found := set.Lint(policy.LintContext{}); len(found) > 0 && !strings.Contains(c.want, "never matches") && !strings.Contains(c.want, "shadow") && !strings.Contains(c.want, "same condition") && !strings.Contains(c.want, "confirm has no effect") && !strings.Contains(c.doc, "tools:") {
				t.Errorf("without a context: %v", found)
			}
		})
	}
}
