package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/sets"
	"github.com/fermata-go/fermata/internal/yamldoc"
)

// document is a rule file before its expressions are compiled.
type document struct {
	version        string
	defaultVerdict Verdict
	zone           string
	defaultAsk     *Requirement // of the default; nil if missing
	ratings        map[string]*compiledRating
	rules          []*rule
	nodes          map[*rule]ruleNodes
}

// maxRules is the maximum number of rules of a file.
const maxRules = 10_000

// ruleNodes are the YAML nodes of a rule's expressions.
type ruleNodes struct{ when, amount yamldoc.Node }

// loader loads one file.
type loader struct {
	yamldoc.Reader
	file          string
	rule          string // the id of the current rule
	directory     Directory
	routes        []string
	unknownFields []string
	maxRules      int
	problems      []Problem
	patterns      *patternSizes
	// expressions are compiled and have no programs yet.
	expressions []pendingExpr
}

func newLoader(file string, options Options) *loader {
	r := &loader{file: file, directory: options.Directory, routes: options.Routes, unknownFields: options.UnknownFields, maxRules: cmp.Or(options.MaxRules, maxRules), patterns: &patternSizes{sizes: make(map[string]int)}}
	r.Report = func(line int, field, text string) {
		r.problems = append(r.problems, Problem{File: file, Line: line, Rule: r.rule, Text: yamldoc.Message(r.rule, field, text)})
	}
	return r
}

func (r *loader) parse(src []byte) document {
	d := document{nodes: make(map[*rule]ruleNodes)}
	root := r.Document(src)
	if root.Missing() {
		return d
	}
	top := root.Map("version", "default", "time_zone", "defaults", "tools", "rules")
	d.version = r.label(top["version"])
	d.zone = r.zone(top["time_zone"])
	d.defaultVerdict = Verdict(top["default"].Choice(verdicts...))
	if top["default"].Missing() {
		root.Reportf("default is missing: set it to allow, ask or deny for actions that no rule matches (for example default: ask)")
	}
	defaults := top["defaults"].Map("ask")["ask"]
	base := r.parseAsk(defaults, nil)
	if !defaults.Missing() {
		d.defaultAsk = base
	}
	if d.defaultVerdict == Ask {
		if defaults.Missing() {
			top["default"].Reportf("ask requires defaults.ask with groups and a deadline")
		} else {
			r.checkComplete(defaults, base)
		}
	}
	d.ratings = r.parseRatings(top["tools"])
	seen := make(map[string]int)
	rules := top["rules"].List()
	if len(rules) > r.maxRules { // compiling them is most of the work
		top["rules"].Reportf("the file has %d rules; the maximum is %d", len(rules), r.maxRules)
		return d
	}
	for _, node := range rules {
		r.parseRule(node, &d, seen)
		r.rule = ""
	}
	return d
}

// label parses a name for display.
func (r *loader) label(node yamldoc.Node) string {
	name := node.Text()
	checkLabel(node, name)
	return name
}

func (r *loader) route(node yamldoc.Node) string {
	name := r.label(node)
	if r.routes != nil && !slices.Contains(r.routes, name) {
		node.Reportf("unknown route %q%s", name, yamldoc.Suggest(name, r.routes))
	}
	return name
}

func (r *loader) zone(node yamldoc.Node) string {
	name := node.Text()
	if _, err := loadZone(name); err != nil {
		node.Reportf("unknown time zone %q; use a name such as Europe/Zurich", name)
	}
	return name
}

func (r *loader) parseRule(node yamldoc.Node, d *document, seen map[string]int) {
	r.rule = truncate(peekID(node))
	fields := node.Map("id", "when", "then", "reason", "mode", "ask", "limit")
	one := &rule{Rule: Rule{ID: fields["id"].Text(), When: fields["when"].Text(), Reason: fields["reason"].Text(), Line: node.Line()}}
	first, repeated := seen[one.ID]
	switch {
	case one.ID == "":
		node.Reportf("id is missing")
	case one.ID == DefaultRule:
		node.Reportf("the rule id %q is reserved for the default", DefaultRule)
	case repeated:
		node.Reportf("the id is already used in line %d", first)
	default:
		checkID(fields["id"], one.ID)
	}
	seen[one.ID] = node.Line()
	checkLength(fields["reason"], one.Reason, maxReason)
	if strings.TrimSpace(one.When) == "" {
		node.Reportf("when is missing: set the condition of the rule; when: \"true\" matches all actions")
	}
	one.Then = Verdict(fields["then"].Choice(verdicts...))
	if fields["then"].Missing() {
		node.Reportf("then is missing: use allow, ask or deny")
	}
	one.DryRun = fields["mode"].Choice("enforce", "dry_run") == "dry_run"
	r.parseRuleAsk(node, fields["ask"], one, d)
	amount := r.parseLimit(fields["limit"], one)
	d.rules = append(d.rules, one)
	d.nodes[one] = ruleNodes{when: fields["when"], amount: amount}
}

// peekID returns the id before the rule is parsed, so that every message can name it.
func peekID(node yamldoc.Node) string {
	return node.Peek("id")
}

func (r *loader) parseRuleAsk(node, ask yamldoc.Node, one *rule, d *document) {
	if one.Then != Ask {
		if !ask.Missing() {
			ask.Reportf("ask is allowed only with then: ask")
		}
		return
	}
	at := ask
	if ask.Missing() {
		at = node
	}
	one.Ask = r.parseAsk(ask, d.defaultAsk)
	r.checkComplete(at, one.Ask)
}

func (r *loader) parseLimit(node yamldoc.Node, one *rule) (amount yamldoc.Node) {
	if node.Missing() {
		return amount
	}
	fields := node.Map("amount", "max", "window", "by")
	by, err := normalizeDimensions(fields["by"].Texts())
	if err != nil {
		fields["by"].Reportf("%v", err)
	}
	limit := &Limit{Amount: fields["amount"].Text(), Max: fields["max"].Int(0), Window: Duration(fields["window"].Duration()), By: by}
	if fields["max"].Missing() {
		node.Reportf("the limit has no max")
	}
	if limit.Window == 0 {
		node.Reportf("the limit has no window: set it, for example window: 24h")
	}
	if err := checkWindow(time.Duration(limit.Window)); err != nil {
		fields["window"].Reportf("%v", err)
	}
	one.Limit = limit
	one.limitTemplate = newQueryTemplate(one.ID, by, time.Duration(limit.Window))
	return fields["amount"]
}

// parseAsk parses a requirement. Missing fields are taken from base, which may be nil.
func (r *loader) parseAsk(node yamldoc.Node, base *Requirement) *Requirement {
	req := &Requirement{OnTimeout: requirement.ExpireOnTimeout, DenyCount: 1}
	if base != nil {
		req = base.Clone()
	}
	fields := node.Map("groups", "separation_of_duties", "deadline", "on_timeout", "on_escalate", "route", "min_auth", "editable", "edit_reasons", "reject_reasons", "confirm", "visible_to", "sensitive", "remember_max", "undo", "deny_count", "verbs")
	has := func(name string) bool { return !fields[name].Missing() }
	if has("groups") {
		req.Groups = r.parseGroups(fields["groups"])
	}
	if has("separation_of_duties") {
		req.Exclude = parseChoices(fields["separation_of_duties"], requirement.Duties)
	}
	if has("deadline") {
		req.Deadline = Duration(fields["deadline"].Duration())
	}
	if has("on_timeout") {
		req.OnTimeout = parseOnTimeout(fields["on_timeout"])
	}
	if has("on_escalate") {
		req.OnEscalate = parseChoice(fields["on_escalate"], requirement.EscalateToNextStep, requirement.EscalateReturns)
	}
	if has("route") {
		req.Routes = []string{r.route(fields["route"])}
	}
	if has("min_auth") {
		req.MinAuth = parseChoice(fields["min_auth"], requirement.AuthLevels[1:]...)
	}
	if has("editable") {
		req.Editable = parsePointers(fields["editable"])
	}
	if has("edit_reasons") {
		req.EditReasons = parseCodes(fields["edit_reasons"])
	}
	if has("reject_reasons") {
		req.RejectReasons = parseCodes(fields["reject_reasons"])
	}
	if has("confirm") {
		req.Confirm = parsePointers(fields["confirm"])
	}
	if has("visible_to") {
		req.VisibleTo = r.parseAudience(fields["visible_to"])
	}
	if has("sensitive") {
		req.Sensitive = parsePointers(fields["sensitive"])
	}
	if has("remember_max") {
		req.RememberMax = Duration(fields["remember_max"].Duration())
	}
	if has("undo") {
		req.Undo = Duration(fields["undo"].Duration())
		if req.Undo > requirement.MaxUndo {
			fields["undo"].Reportf("%s is more than %s", req.Undo, requirement.MaxUndo)
		}
	}
	if has("deny_count") {
		req.DenyCount = int(fields["deny_count"].Int(1))
		if req.DenyCount > requirement.MaxCount {
			fields["deny_count"].Reportf("%d is more than %d", req.DenyCount, requirement.MaxCount)
		}
	}
	if has("verbs") {
		req.Verbs = parseVerbs(fields["verbs"])
	}
	return req
}

func parseChoice[T ~string](node yamldoc.Node, choices ...T) T {
	names := make([]string, len(choices))
	for i, choice := range choices {
		names[i] = string(choice)
	}
	return T(node.Choice(names...))
}

func parseChoices[T ~string](node yamldoc.Node, choices []T) []T {
	var chosen []T
	for _, item := range node.List() {
		chosen = append(chosen, parseChoice(item, choices...))
	}
	return sets.Union(nil, chosen)
}

// parseVerbs parses the allowed verbs. Approve and reject are required, so that merged rules keep
// both.
func parseVerbs(node yamldoc.Node) []requirement.Verb {
	chosen := parseChoices(node, requirement.ActionVerbs)
	for _, verb := range []requirement.Verb{requirement.VerbApprove, requirement.VerbReject} {
		if !slices.Contains(chosen, verb) {
			node.Reportf("must include %s: approvers must be able to approve and to reject", verb)
		}
	}
	return sets.Intersect(requirement.ActionVerbs, chosen) // in one order, whatever the file says
}

// parseOnTimeout parses what happens at the deadline. Likely mistakes get their own message.
func parseOnTimeout(node yamldoc.Node) requirement.OnTimeout {
	switch text := node.Text(); text {
	case "approve", "allow":
		node.Reportf("%s is not possible: waiting never approves anything. To approve in advance, create a grant", text)
	case "deny":
		node.Reportf("deny is not possible: deny is a verdict of rules. Use on_timeout: reject")
	default:
		return parseChoice(node, requirement.ExpireOnTimeout, requirement.EscalateOnTimeout, requirement.RejectOnTimeout, requirement.DefaultOnTimeout)
	}
	return requirement.ExpireOnTimeout
}

// parseCodes parses the reason codes of edits and rejections.
func parseCodes(node yamldoc.Node) []string {
	var codes []string
	for _, item := range node.List() {
		code := item.Text()
		if code == "" {
			item.Reportf("the code is empty")
		}
		checkCharacters(item, code)
		codes = append(codes, code)
	}
	if len(codes) > maxCodes {
		node.Reportf("%d codes are more than %d", len(codes), maxCodes)
	}
	return sets.Union(nil, codes)
}

// parseAudience parses who may see a request.
func (r *loader) parseAudience(node yamldoc.Node) [][]string {
	names := parseNames(node)
	for _, name := range names {
		if name == requirement.Anyone || strings.HasPrefix(name, "oncall:") {
			node.Reportf("must not contain %s: use group:…, user:…, role:… or requester", name)
		}
	}
	if r.directory != nil {
		members(r.directory, names, func(name string) { node.Reportf("unknown name %s", name) })
	}
	if len(names) == 0 {
		return nil // everyone
	}
	return [][]string{names}
}

func parsePointers(node yamldoc.Node) []string {
	var all []string
	for _, item := range node.List() {
		text := item.Text()
		checkLength(item, text, maxPath)
		if text != "" && !strings.HasPrefix(text, "/") {
			item.Reportf("%q is not a JSON pointer; use %q", text, "/"+text)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
