package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
)

// staticDirectory is a directory for tests.
type staticDirectory map[string][]string

func (p staticDirectory) Members(name string) ([]string, bool) {
	members, known := p[name]
	return members, known
}

// A file with an error is not loaded. The message has file, line and rule, the error and a
// suggestion.
func TestLoad_Mistakes(t *testing.T) {
	const head = "default: allow\nrules:\n"
	directory := staticDirectory{"group:oncall": {"ann", "bob"}, "group:empty": {}, "user:ann": {"ann"}}
	for name, c := range map[string]struct{ doc, want string }{
		"empty file":                   {"", `p.yaml:1: the file is empty`},
		"no YAML":                      {"default: allow\nrules: [\n", `p.yaml:2: invalid YAML: `},
		"two documents":                {"default: allow\n---\ndefault: deny\n", `p.yaml:2: a second document begins here`},
		"an anchor":                    {"default: allow\ndefaults: &d {}\nrules:\n- *d\n", `p.yaml:4: rules[0]: aliases are not supported`},
		"no mapping":                   {"- default\n", `p.yaml:1: expected a mapping of keys`},
		"default missing":              {"rules: []\n", `p.yaml:1: default is missing`},
		"default unknown":              {"default: alow\n", `p.yaml:1: default: "alow" is not one of allow, ask, deny; did you mean "allow"?`},
		"default ask without groups":   {"default: ask\n", `p.yaml:1: default: ask requires defaults.ask`},
		"key on top":                   {"default: allow\nrule: []\n", `p.yaml:2: rule: unknown key; did you mean "rules"?`},
		"key twice":                    {"default: allow\ndefault: deny\n", `p.yaml:2: default: is repeated, first in line 1`},
		"no value":                     {"default:\n", `p.yaml:1: default: the value is missing`},
		"zone":                         {"default: allow\ntime_zone: Europe/Zurick\n", `p.yaml:2: time_zone: unknown time zone "Europe/Zurick"; use a name such as Europe/Zurich`},
		"key in a rule":                {head + "- id: a\n  wen: 'true'\n  then: deny\n", `p.yaml:4: rule "a": wen: unknown key; did you mean "when"?`},
		"id after the rest":            {head + "- when: 'tru'\n  then: deny\n  id: a\n", `p.yaml:3: rule "a": when: unknown name "tru"`},
		"id missing":                   {head + "- when: 'true'\n  then: deny\n", `p.yaml:3: rules[0]: id is missing`},
		"id twice":                     {head + "- {id: a, when: 'true', then: deny}\n- {id: a, when: 'true', then: deny}\n", `p.yaml:4: rule "a": the id is already used in line 3`},
		"id taken by us":               {head + "- {id: default, when: 'true', then: deny}\n", `the rule id "default" is reserved`},
		"id too long":                  {head + "- {id: " + strings.Repeat("x", 101) + ", when: 'true', then: deny}\n", `p.yaml:3: rule "` + strings.Repeat("x", 100) + `…": id: "` + strings.Repeat("x", 100) + `…" has 101 characters; the maximum is 100`},
		"id with a space":              {head + "- when: 'true'\n  then: deny\n  id: a b\n", `p.yaml:5: rule "a b": id: "a b" contains ' ' (U+0020); use letters, digits and - _ . : / @`},
		"invisible character in id":    {head + "- {id: \"a\\u200b\", when: 'true', then: deny}\n", `p.yaml:3: rule "a\u200b": id: "a\u200b" contains '\u200b' (U+200B); use letters, digits and - _ . : / @`},
		"version too long":             {"default: allow\nversion: " + strings.Repeat("1", 257) + "\n", `p.yaml:2: version: "` + strings.Repeat("1", 100) + `…" has 257 characters; the maximum is 256`},
		"version of two lines":         {"default: allow\nversion: \"a\\nb\"\n", `p.yaml:2: version: "a\nb" contains U+000A, which is not printable`},
		"reason too long":              {head + "- {id: a, when: 'true', then: deny, reason: " + strings.Repeat("x", 2001) + "}\n", `has 2001 characters; the maximum is 2000`},
		"group too long":               {head + "- id: a\n  when: 'true'\n  then: ask\n  ask:\n    deadline: 1h\n    groups:\n    - from:\n      - anyone\n      - group:" + strings.Repeat("x", 251) + "\n", `p.yaml:11: rule "a": ask.groups[0].from[1]: "group:` + strings.Repeat("x", 94) + `…" has 257 characters; the maximum is 256`},
		"invisible character in group": {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [\"group:on\\u200bcall\"]}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0].from[0]: "group:on\u200bcall" contains U+200B, which is not printable`},
		"group with a space":           {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall ']}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0].from[0]: "group:oncall " begins or ends with a space`},
		"widened too long":             {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone], widen: ['group:" + strings.Repeat("x", 251) + "']}], deadline: 1h}}\n", `has 257 characters; the maximum is 256`},
		"route too long":               {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, route: " + strings.Repeat("x", 257) + "}}\n", `ask.route: "` + strings.Repeat("x", 100) + `…" has 257 characters`},
		"show is gone":                 {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, show: [x]}}\n", `p.yaml:3: rule "a": ask.show: unknown key; known: confirm, deadline, deny_count, edit_reasons, editable, groups, min_auth, on_escalate, on_timeout, reject_reasons, remember_max, route, sensitive, separation_of_duties, undo, verbs, visible_to`},
		"stage below zero":             {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone], stage: -1}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0].stage: "-1" is not a whole number of at least 0`},
		"stage too high":               {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone], stage: 20}], deadline: 1h}}\n", `stage 20 is more than 19`},
		"escalate to what":             {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, on_escalate: returns}}\n", `p.yaml:3: rule "a": ask.on_escalate: "returns" is not one of next_step, return; did you mean "return"?`},
		"a code with a space":          {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, edit_reasons: [my fault]}}\n", `p.yaml:3: rule "a": ask.edit_reasons[0]: "my fault" contains ' ' (U+0020); use letters, digits and - _ . : / @`},
		"a code without text":          {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, edit_reasons: ['']}}\n", `the code is empty`},
		"visible to anyone":            {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, visible_to: [anyone]}}\n", `p.yaml:3: rule "a": ask.visible_to: must not contain anyone: use group:…, user:…, role:… or requester`},
		"visible to a nobody":          {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, visible_to: [admins]}}\n", `"admins" has no kind`},
		"sensitive of what":            {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, sensitive: [iban]}}\n", `"iban" is not a JSON pointer; use "/iban"`},
		"path too long":                {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, editable: [/" + strings.Repeat("x", 1024) + "]}}\n", `ask.editable[0]: "/` + strings.Repeat("x", 99) + `…" has 1025 characters; the maximum is 1024`},
		"when missing":                 {head + "- {id: a, then: deny}\n", `p.yaml:3: rule "a": when is missing`},
		"then missing":                 {head + "- {id: a, when: 'true'}\n", `p.yaml:3: rule "a": then is missing`},
		"then unknown":                 {head + "- {id: a, when: 'true', then: permit}\n", `p.yaml:3: rule "a": then: "permit" is not one of allow, ask, deny`},
		"mode unknown":                 {head + "- {id: a, when: 'true', then: deny, mode: dryrun}\n", `p.yaml:3: rule "a": mode: "dryrun" is not one of enforce, dry_run; did you mean "dry_run"?`},
		"unknown field":                {head + "- {id: a, when: 'req.tol == \"x\"', then: deny}\n", `p.yaml:3: rule "a": when: unknown field "tol"; did you mean "tool"?`},
		"unknown clock field":          {head + "- {id: a, when: 'local.hours < 3', then: deny}\n", `unknown field "hours"; did you mean "hour"?`},
		"unknown name":                 {head + "- {id: a, when: 'reg.tool == \"x\"', then: deny}\n", `unknown name "reg"; did you mean "req"?`},
		"line in a block":              {head + "- id: a\n  when: |\n    req.tool == \"x\" &&\n    req.grap == \"y\"\n  then: deny\n", `p.yaml:6: rule "a": when: unknown field "grap"; did you mean "graph"?`},
		"not CEL":                      {head + "- {id: a, when: 'req.tool ==', then: deny}\n", `p.yaml:3: rule "a": when: Syntax error`},
		"a number":                     {head + "- {id: a, when: 'req.cost + 1', then: deny}\n", `when: the type is int; a condition must be a bool`},
		"anything":                     {head + "- {id: a, when: 'args.x', then: deny}\n", `when: the type is not known`},
		"wrong type":                   {head + "- {id: a, when: 'req.cost > \"x\"', then: deny}\n", `when: found no matching overload`},
		"makes texts":                  {head + "- {id: a, when: 'args.s.replace(args.a, args.b) == \"\"', then: deny}\n", `when: replace is not allowed in rules`},
		"makes texts of lists":         {head + "- {id: a, when: 'args.l.join(args.s) == \"\"', then: deny}\n", `when: join is not allowed in rules`},
		"no pattern":                   {head + "- {id: b, when: 'true', then: deny}\n- {id: a, when: 'args.s.matches(\"(\")', then: deny}\n- {id: c, when: 'true', then: deny}\n", `p.yaml:4: rule "a": when: error parsing regexp`},
		"pattern of the agent":         {head + "- {id: a, when: 'args.s.matches(args.p)', then: deny}\n", `when: matches needs a literal pattern`},
		"pattern, as function":         {head + "- {id: a, when: 'matches(args.s, args.p)', then: deny}\n", `when: matches needs a literal pattern`},
		"needle of the agent":          {head + "- {id: a, when: 'args.s.indexOf(args.p) > 1', then: deny}\n", `when: indexOf needs a literal pattern`},
		"two lists":                    {head + "- {id: a, when: 'sets.contains(args.l, args.m)', then: deny}\n", `when: sets.contains needs at least one literal list`},
		"count of a variable":          {head + "- {id: a, when: 'history.count(req.tool, \"1h\") > 1', then: deny}\n", `when: history.count needs literal arguments`},
		"count by nothing":             {head + "- {id: a, when: 'history.count(\"toll\", \"1h\") > 1', then: deny}\n", `history.count: unknown dimension "toll"; did you mean "tool"?`},
		"count over nothing":           {head + "- {id: a, when: 'history.count(\"tool\", \"0s\") > 1', then: deny}\n", `history.count: the window is empty`},
		"zone of a variable":           {head + "- {id: a, when: 'now.local(req.graph).hour > 1', then: deny}\n", `now.local needs a literal zone`},
		"zone unknown":                 {head + "- {id: a, when: 'now.local(\"Mars\").hour > 1', then: deny}\n", `unknown time zone "Mars"`},
		"ask with allow":               {head + "- {id: a, when: 'true', then: allow, ask: {deadline: 1h}}\n", `ask is allowed only with then: ask`},
		"no groups":                    {head + "- {id: a, when: 'true', then: ask, ask: {deadline: 1h}}\n", `ask.groups is missing`},
		"deadline missing":             {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}]}}\n", `p.yaml:3: rule "a": ask: deadline is missing, here and in defaults.ask: set it, for example deadline: 24h`},
		"deadline in words":            {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: soon}}\n", `p.yaml:3: rule "a": ask.deadline: invalid duration "soon"; use for example 90m, 24h or 30d`},
		"deadline below zero":          {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: -1h}}\n", `the duration is negative`},
		"approved by waiting":          {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, on_timeout: approve}}\n", `on_timeout: approve is not possible: waiting never approves anything`},
		"denied by waiting":            {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, on_timeout: deny}}\n", `Use on_timeout: reject`},
		"undo too long":                {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, undo: 11m}}\n", `p.yaml:3: rule "a": ask.undo: 11m is more than 10m`},
		"undo in words":                {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, undo: soon}}\n", `p.yaml:3: rule "a": ask.undo: invalid duration "soon"; use for example 90m, 24h or 30d`},
		"min_auth unknown":             {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, min_auth: mfa}}\n", `p.yaml:3: rule "a": ask.min_auth: "mfa" is not one of slack_linked, token, sso, sso_mfa, hardware`},
		"duty unknown":                 {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, separation_of_duties: [requestor]}}\n", `did you mean "requester"?`},
		"no pointer":                   {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, editable: [sql]}}\n", `"sql" is not a JSON pointer; use "/sql"`},
		"group key":                    {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{form: [anyone]}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0].form: unknown key; did you mean "from"?`},
		"no members key":               {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{count: 1}], deadline: 1h}}\n", `the group is empty`},
		"a group twice":                {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall', 'user:ann']}, {from: ['user:ann', 'group:oncall']}], deadline: 1h}}\n", `duplicate group: use count to require more people`},
		"count zero":                   {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone], count: 0}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0].count: "0" is not a whole number of at least 1`},
		"count of a crowd":             {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone], count: 51}], deadline: 1h}}\n", `count 51 is more than 50`},
		"sort missing":                 {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [oncall]}], deadline: 1h}}\n", `"oncall" has no kind; use group:oncall`},
		"sort unknown":                 {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['gruop:x']}], deadline: 1h}}\n", `"gruop:x" has an unknown kind; did you mean "group"?`},
		"name filled in":               {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:${req.grph}']}], deadline: 1h}}\n", `unknown placeholder "${req.grph}"; did you mean "req.graph"?`},
		"requester excluded":           {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [requester]}], deadline: 1h, separation_of_duties: [requester]}}\n", `the requester is an approver, but`},
		"requester an author":          {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [requester]}], deadline: 1h, separation_of_duties: [author]}}\n", `excludes author`},
		"two requesters":               {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [requester], count: 2}], deadline: 1h}}\n", `2 people are required, but there is only one requester`},
		"widened to no sort":           {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone], widen: [managers]}], deadline: 1h}}\n", `"managers" has no kind; use group:managers`},
		"widened to an empty group":    {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall'], widen: ['group:bosses']}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0]: unknown name group:bosses`},
		"widened to them":              {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall'], widen: ['group:oncall']}], deadline: 1h}}\n", `group:oncall is already in from`},
		"widened to requester":         {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall'], widen: [requester]}], deadline: 1h}}\n", `widen must not contain the requester`},
		"verb unknown":                 {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, verbs: [approve, reject, snoze]}}\n", `did you mean "snooze"?`},
		"verb of a question":           {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, verbs: [approve, reject, respond]}}\n", `p.yaml:3: rule "a": ask.verbs[2]: "respond" is not one of approve, edit, reject, ask, claim, delegate, snooze, extend, escalate, abandon`},
		"no approve verb":              {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, verbs: [reject, claim]}}\n", `p.yaml:3: rule "a": ask.verbs: must include approve: approvers must be able to approve and to reject`},
		"no no":                        {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, verbs: [approve]}}\n", `p.yaml:3: rule "a": ask.verbs: must include reject: approvers must be able to approve and to reject`},
		"no verb":                      {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: [anyone]}], deadline: 1h, verbs: []}}\n", `p.yaml:3: rule "a": ask.verbs: must include approve: approvers must be able to approve and to reject`},
		"no such group":                {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:opcall']}], deadline: 1h}}\n", `p.yaml:3: rule "a": ask.groups[0]: unknown name group:opcall`},
		"empty group":                  {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:empty']}], deadline: 1h}}\n", `group:empty has no members`},
		"too few":                      {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall', 'user:ann'], count: 3}], deadline: 1h}}\n", `3 people are required, but only 2 are in`},
		"too few people to reject":     {head + "- {id: a, when: 'true', then: ask, ask: {groups: [{from: ['group:oncall']}, {from: ['group:oncall', 'user:ann']}], deadline: 1h, deny_count: 3}}\n", `3 rejections are required, but only 2 people are asked`},
		"limit without max":            {head + "- {id: a, when: 'true', then: deny, limit: {window: 1h}}\n", `the limit has no max`},
		"limit without window":         {head + "- {id: a, when: 'true', then: deny, limit: {max: 1}}\n", `the limit has no window`},
		"limit in words":               {head + "- {id: a, when: 'true', then: deny, limit: {max: 1, window: soon}}\n", `p.yaml:3: rule "a": limit.window: invalid duration "soon"; use for example 90m, 24h or 30d`},
		"limit too far back":           {head + "- {id: a, when: 'true', then: deny, limit: {max: 1, window: 32d}}\n", `p.yaml:3: rule "a": limit.window: window 32d is too long: the maximum is 31d`},
		"count too far back":           {head + "- {id: a, when: 'history.count(\"tool\", \"745h\") > 1', then: deny}\n", `history.count: window 745h is too long: the maximum is 31d`},
		"limit by nothing":             {head + "- {id: a, when: 'true', then: deny, limit: {max: 1, window: 1h, by: [user]}}\n", `unknown dimension "user"; `},
		"amount of words":              {head + "- {id: a, when: 'true', then: deny, limit: {max: 1, window: 1h, amount: '\"x\"'}}\n", `amount: the type is string; an amount must be a whole number`},
		"amount of fractions":          {head + "- {id: a, when: 'true', then: deny, limit: {max: 1, window: 1h, amount: '1.5'}}\n", `amount: the type is double`},
		"max below zero":               {head + "- {id: a, when: 'true', then: deny, limit: {max: -1, window: 1h}}\n", `p.yaml:3: rule "a": limit.max: "-1" is not a whole number of at least 0`},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Load("p.yaml", []byte(c.doc), policy.Options{Directory: directory})
			failed, ok := errors.AsType[*policy.LoadError](err)
			if set != nil || !ok {
				t.Fatalf("loaded: %v, %v", set, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			for i, p := range failed.Problems {
				if slices.Contains(failed.Problems[:i], p) {
					t.Errorf("said twice: %s", p)
				}
				if p.File != "p.yaml" || p.Line < 1 {
					t.Errorf("a problem without a place: %+v", p)
				}
			}
		})
	}
}

// Names may be long and in any script.
func TestLoad_AcceptsReadableNames(t *testing.T) {
	set := load(t, "default: allow\nversion: 2026-11-15 früh\nrules:\n- id: "+strings.Repeat("é", 100)+"\n  when: 'true'\n  then: ask\n  reason: |\n    two\n    lines\n"+
		"  ask: {groups: [{from: ['group:Domain Admins', 'user:ann@example.org', 'group:"+strings.Repeat("x", 250)+"', 'group:${req.graph}']}], deadline: 1h, route: Zürich, edit_reasons: [prüfung-2]}\n"+
		"- {id: 'team-a/pay_out.2:v1@x', when: 'true', then: deny}\n")
	if n := len(set.Rules()); n != 2 {
		t.Errorf("%d rules", n)
	}
}

func TestLoad_ReportsAllMistakes(t *testing.T) {
	_, err := policy.Load("p.yaml", []byte("default: alow\nrules:\n- {id: a, when: 'req.tol', then: deny}\n- {id: b, wen: 'true', then: deny}\n"), policy.Options{})
	failed, ok := errors.AsType[*policy.LoadError](err)
	if !ok || len(failed.Problems) != 4 {
		t.Errorf("want four problems: %v", err)
	}
}

func TestLoad_DigestIsOfTheBytes(t *testing.T) {
	a, b, c := load(t, "default: allow\n"), load(t, "default: allow\n"), load(t, "default: allow\n\n")
	if a.Digest() != b.Digest() || a.Digest() == c.Digest() || !strings.HasPrefix(a.Digest(), "sha256:") {
		t.Error(a.Digest(), b.Digest(), c.Digest())
	}
}

// The source of a set can be stored and gives the same set again.
func TestLoad_KeepsSource(t *testing.T) {
	a := load(t, operations)
	again, err := policy.Load("elsewhere.yaml", []byte(a.Source()), policy.Options{})
	if err != nil || a.Source() != operations || again.Digest() != a.Digest() {
		t.Errorf("%v: %s", err, a.Source())
	}
}

// A rule can use the maximum window.
func TestLoad_AcceptsMaxWindow(t *testing.T) {
	set := load(t, "default: allow\nrules:\n- {id: a, when: 'history.count(\"tool\", \"31d\") > 1', then: deny, limit: {max: 1, window: 31d}}\n")
	if demands := set.CounterQueries(input("x", `{}`)); len(demands) != 2 || time.Duration(demands[0].Window) != policy.MaxWindow {
		t.Errorf("%+v", demands)
	}
}

// The digest of a rule equals that of its trace, and changes with the rule.
func TestSet_RuleDigestMatchesTrace(t *testing.T) {
	rule := func(limit string) *policy.Set {
		return load(t, "default: allow\nrules:\n- {id: a, when: 'true', then: deny, limit: {max: "+limit+", window: 1h}}\n")
	}
	one, two := rule("1"), rule("2")
	if d := decide(t, one, input("x", `{}`)); d.Trace[0].Digest != one.RuleDigest("a") || one.RuleDigest("a") == two.RuleDigest("a") || one.RuleDigest("b") != "" {
		t.Errorf("%s, %s, %+v", one.RuleDigest("a"), two.RuleDigest("a"), d.Trace)
	}
}

// Rules are copies: a caller cannot change a set.
func TestSet_RulesAreCopies(t *testing.T) {
	set := load(t, operations)
	rules := set.Rules()
	rules[1].Ask.Groups[0].From[0] = "group:evil"
	_, need := set.Default()
	need.Groups[0].Count = 0
	if set.Rules()[1].Ask.Groups[0].From[0] != "group:db-oncall" {
		t.Error("a rule was changed from outside")
	}
	if _, need := set.Default(); need.Groups[0].Count != 1 {
		t.Error("the default was changed from outside")
	}
	d := decide(t, set, input("db.execute", `{"sql":"drop"}`))
	d.Requirement.Groups[0].From[0] = "group:evil"
	if again := decide(t, set, input("db.execute", `{"sql":"drop"}`)); again.Requirement.Groups[0].From[0] != "group:db-oncall" {
		t.Error("a decision was changed into a rule")
	}
}

// Each group is large enough, but together they are not: each person counts once.
func TestLoad_OverlappingGroupsNeedEnoughPeople(t *testing.T) {
	directory := staticDirectory{"group:finance": {"ann", "bob"}, "group:owners": {"ann"}, "user:ann": {"ann"}, "group:board": {"ann", "bob"}}
	for groups, enough := range map[string]bool{
		`{from: ["group:owners"]}, {from: ["group:finance"]}`:                                              true,
		`{from: ["group:finance"]}, {from: ["group:owners"]}`:                                              true, // bob for finance
		`{from: ["group:owners"]}, {from: ["user:ann"]}`:                                                   false,
		`{from: ["group:finance"], count: 2}, {from: ["group:owners"]}`:                                    false,
		`{from: ["group:finance"]}, {from: ["group:board"]}, {from: ["group:owners"]}`:                     false,
		`{from: ["group:finance"]}, {from: ["group:board"]}, {from: ["group:of:${req.graph}"]}`:            true, // known at evaluation
		`{from: ["group:finance"], count: 2}, {from: ["group:owners"]}, {from: ["group:of:${req.graph}"]}`: false,
	} {
		doc := "default: allow\nrules:\n- {id: it, when: 'true', then: ask, ask: {deadline: 1h, groups: [" + groups + "]}}\n"
		_, err := policy.Load("policy.yaml", []byte(doc), policy.Options{Directory: directory})
		if enough != (err == nil) || err != nil && !strings.Contains(err.Error(), "different people are required") {
			t.Errorf("%s: %v", groups, err)
		}
	}
}
