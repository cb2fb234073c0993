// Package texts has the texts of the pages by language and key.
package texts

import (
	"fmt"
	"maps"

	"github.com/fermata-go/fermata/internal/language"
)

// Translation has the texts of one language by key.
type Translation map[string]string

// Text returns the text of a key with its arguments in the notation of fmt. A missing key is shown,
// so that it is noticed.
func (t Translation) Text(key string, args ...any) string {
	text, ok := t[key]
	if !ok {
		return "⟪" + key + "⟫"
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// Count returns the text of key.one or key.other for a number, which is the first argument.
func (t Translation) Count(key string, n int, args ...any) string {
	form := ".other"
	if n == 1 {
		form = ".one"
	}
	return t.Text(key+form, append([]any{n}, args...)...)
}

// English has all texts of the pages. Keys begin with the name of the page. Pages with many texts
// have a table of their own.
var English = merged(coreTexts, inboxTexts, requestTexts, refusalTexts, tourTexts, auditTexts, notificationTexts, accountTexts, channelTexts, chatTexts, pushTexts)

func merged(tables ...Translation) Translation {
	all := make(Translation)
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

// Languages has the texts by language.
var Languages = map[string]Translation{language.English: English, language.German: German}

var coreTexts = Translation{
	"language.name":    "English",
	"language.code":    "en",
	"language.title":   "Language",
	"language.browser": "As in the browser",
	"note.language":    "The pages are in English now.",

	"app.name":  "Fermata",
	"app.about": "Approve, answer and review what agents ask.",
	"app.skip":  "Skip to the content",
	"app.menu":  "Menu",
	"app.close": "Close",

	"nav.label":      "Main",
	"nav.inbox":      "Inbox",
	"nav.runs":       "Runs",
	"nav.graphs":     "Graphs",
	"nav.governance": "Governance",
	"nav.policies":   "Policies",
	"nav.routes":     "Routes",
	"nav.grants":     "Grants",
	"nav.audit":      "Audit",
	"nav.operations": "Operations",
	"nav.analytics":  "Analytics",
	"nav.deliveries": "Deliveries",
	"nav.admin":      "Admin",
	"nav.keys":       "Keyboard shortcuts",
	"nav.signout":    "Sign out",

	"keys.title":   "Keyboard shortcuts",
	"keys.next":    "Next request",
	"keys.prev":    "Previous request",
	"keys.open":    "Open the request",
	"keys.search":  "Search",
	"keys.approve": "Approve",
	"keys.reject":  "Reject",
	"keys.ask":     "Ask the agent",
	"keys.edit":    "Edit",
	"keys.comment": "Comment",
	"keys.send":    "Send the open form",
	"keys.help":    "Show this help",
	"keys.inbox":   "Go to the inbox",

	"time.ago":      "%s ago",
	"time.in":       "in %s",
	"time.left":     "%s left",
	"time.now":      "now",
	"time.overdue":  "overdue",
	"time.units":    "s min h d",
	"time.months":   "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
	"time.weekdays": "Sun Mon Tue Wed Thu Fri Sat",
	"time.day":      "%d %s %s",
	"time.date":     "%d %s %d %s",
	"time.exact":    "2006-01-02 15:04:05",

	"value.fold":             "Show all (%s)",
	"value.empty":            "empty",
	"value.characters.one":   "%d character",
	"value.characters.other": "%d characters",
	"value.items.one":        "%d item",
	"value.items.other":      "%d items",

	"error.incomplete":            "The form does not say what its page showed. Open the page again, and send its form.",
	"error.form":                  "The form could not be read.",
	"error.back":                  "Go to the inbox",
	"error.home":                  "Go to the first page",
	"error.signin":                "Sign in",
	"error.kept":                  "What you typed is kept on this page.",
	"error.signinnew":             "Sign in in a new tab",
	"error.sendagain":             "Send again",
	"error.retry":                 "Try again",
	"error.detail":                "The server said:",
	"error.unauthenticated.title": "Sign in to see this page",
	"error.unauthenticated.text":  "You are not signed in, or your session has ended.",
	"error.unauthenticated.next":  "After you sign in, you come back to this page.",
	"error.forbidden.title":       "You may not see this page",
	"error.forbidden.text":        "Your role does not include it.",
	"error.forbidden.next":        "Ask an admin of your account for access.",
	"error.notfound.title":        "There is no such page",
	"error.notfound.text":         "It may have been deleted, or you may not see it.",
	"error.notfound.next":         "Check the address, or look for it in the inbox.",
	"error.unavailable.title":     "The server cannot write now",
	"error.unavailable.text":      "The database is unavailable or read-only, or the server is overloaded. Nothing was changed.",
	"error.unavailable.next":      "Try again in a minute. If it lasts, tell the operator of this server.",
	"error.busy.title":            "Too many requests",
	"error.busy.text":             "Your account has reached its limit. Nothing was changed.",
	"error.busy.next":             "Try again in a few seconds.",
	"error.internal.title":        "Something went wrong",
	"error.internal.text":         "The server has a fault and logged it. It is not known whether anything was changed.",
	"error.internal.next":         "Go back to the inbox and check before you repeat it.",
	"error.request.title":         "This was not possible",
	"error.request.text":          "The server rejected the request. Nothing was changed.",
	"error.request.next":          "Go back and correct it.",

	// runs.go
	"runs.title":       "Runs",
	"runs.all":         "All",
	"runs.filter":      "Filter by status",
	"runs.of":          "Only runs of %s.",
	"runs.allgraphs":   "Show all",
	"runs.run":         "Run",
	"runs.status":      "Status",
	"runs.graph":       "Graph",
	"runs.started":     "Started",
	"runs.updated":     "Updated",
	"runs.empty.title": "No runs",
	"runs.empty.text":  "A run appears here as soon as an agent or a person starts one.",
	"runs.empty.start": "Start a run",
	"list.older":       "Older",

	"status.ready":      "Ready",
	"status.running":    "Running",
	"status.waiting":    "Waiting",
	"status.parked":     "Parked",
	"status.completed":  "Completed",
	"status.failed":     "Failed",
	"status.expired":    "Expired",
	"status.cancelled":  "Cancelled",
	"status.superseded": "Superseded",

	"verdict.approve": "approved",
	"verdict.reject":  "rejected",
	"verdict.return":  "returned",
	"verdict.answer":  "answered",
	"verdict.expire":  "expired",

	"run.started":        "started",
	"run.updated":        "updated",
	"run.attempts.one":   "%d attempt",
	"run.attempts.other": "%d attempts",
	"run.why.failed":     "The run failed.",
	"run.why.expired":    "The run ended because its request was not decided in time.",
	"run.why.cancelled":  "The run was cancelled.",
	"run.why.superseded": "A newer run has taken its place.",
	"run.why.parked":     "The run is parked.",
	"run.parked":         "The run could not continue and waits for an operator. Retry it after the cause is fixed.",
	"run.failed":         "Retry continues the run from its last step, after the cause is fixed. Completed actions are not repeated.",
	"run.detail":         "Complete error",
	"run.drawing":        "Drawing of the graph",
	"run.open":           "Open requests",
	"run.noopen":         "Nothing is open.",
	"run.asked":          "asked",
	"run.decided":        "Past requests",
	"run.nodecided":      "Nothing was decided yet.",
	"run.by":             "by %s",
	"run.result":         "Result",
	"run.activity":       "What happened",

	"run.receipt":          "Receipt of the agent",
	"run.receipt.outcome":  "Action",
	"run.receipt.by":       "Sent by",
	"run.receipt.done":     "Done",
	"run.receipt.failed":   "Failed",
	"run.receipt.not_done": "Not done",

	"run.event.created":       "Started",
	"run.event.asked":         "Asked a person",
	"run.event.decided":       "Decided",
	"run.event.expired":       "Request expired",
	"run.event.withdrawn":     "Request withdrawn",
	"run.event.effect_begun":  "Action begun",
	"run.event.effect_ended":  "Action ended",
	"run.event.waiting":       "Waits",
	"run.event.parked":        "Parked",
	"run.event.completed":     "Completed",
	"run.event.failed":        "Failed",
	"run.event.cancelled":     "Cancelled",
	"run.event.superseded":    "Superseded",
	"run.event.step_started":  "started",
	"run.event.step_finished": "finished",
	"run.event.step_waits":    "waits",
	"run.event.step_failed":   "failed",

	"run.output":         "Output as JSON",
	"run.retry":          "Retry run",
	"run.cancel":         "Cancel run…",
	"run.cancel.text":    "The run ends now, and its open requests are withdrawn. This cannot be undone.",
	"run.cancel.confirm": "Cancel run",

	"note.cancelled": "The run was cancelled.",
	"note.retried":   "The run is tried again.",

	// graphs.go
	"graphs.title":       "Graphs",
	"graphs.lead":        "What this server can run.",
	"graphs.graph":       "Graph",
	"graphs.description": "Description",
	"graphs.runs":        "Runs",
	"graphs.empty.title": "No graphs",
	"graphs.empty.text":  "This server runs no graphs of its own. Agents elsewhere can still create requests through the API.",

	"graph.start":    "Start a run",
	"graph.rejected": "The run was not started.",
	"graph.badjson":  "The input is not valid JSON.",
	"graph.input":    "Input (JSON)",
	"graph.key":      "State key (optional)",
	"graph.key.hint": "A name for the run, such as order-17. Without one the server makes it.",
	"graph.schema":   "Input schema",

	"graph.capabilities": "What its engine supports",
	"graph.parallel":     "Several requests of a run at once",
	"graph.partial":      "Continues after each answer",
	"graph.partial.no":   "no: after all open requests are decided",
	"graph.edit":         "Approvers can edit arguments",
	"graph.cancel":       "A cancelled run is stopped where it runs",
	"graph.streaming":    "Live steps and output",
	"graph.receipts":     "Record of what was executed",
	"graph.once":         "Exactly once",
	"graph.once.effects": "approved effects, and the use of answers",
	"graph.once.answers": "the use of answers",
	"graph.once.none":    "nothing; the agent recognizes repetitions by their id",
	"graph.yes":          "yes",
	"graph.no":           "no",

	"note.started": "The run was started.",

	// policies.go
	"policies.title":         "Policies",
	"policies.lead":          "The rules in force. All are evaluated; a rule that denies wins over one that asks, and that over one that allows.",
	"policies.none":          "The server has no policy file: every action needs the approval of any one approver.",
	"policies.rule":          "Rule",
	"policies.then":          "Then",
	"policies.when":          "When",
	"policies.who":           "Who decides",
	"policies.hits":          "30 days",
	"policies.dryrun":        "dry run",
	"policies.explain":       "Explain an action",
	"policies.tool":          "Action",
	"policies.args":          "Arguments (JSON)",
	"policies.graph":         "Graph (optional)",
	"policies.requester":     "Requester (optional)",
	"policies.badjson":       "The arguments are not valid JSON.",
	"policies.by":            "by",
	"policies.trace":         "All rules",
	"policies.replay":        "Try a changed policy",
	"policies.replay.hint":   "The actions of the last %d days are decided again with this text. Nothing is changed.",
	"policies.replay.go":     "Try it on history",
	"policies.text":          "Policy",
	"policies.rulings.one":   "%d action was decided again.",
	"policies.rulings.other": "%d actions were decided again.",
	"policies.changes":       "%d would be stricter, %d looser, %d unchanged.",
	"policies.truncated":     "There are more actions than one replay covers.",
	"policies.was":           "Was",
	"policies.becomes":       "Becomes",
	"policies.count":         "Actions",
	"ruling.allow":           "Allow",
	"ruling.ask":             "Ask",
	"ruling.deny":            "Deny",

	// routes_page.go
	"routes.title":          "Routes",
	"routes.lead":           "Who is notified when, if nobody reacts.",
	"routes.at":             "If asked at (%s)",
	"routes.show":           "Show",
	"routes.badtime":        "This is not a time.",
	"routes.clock.wall":     "all hours count",
	"routes.clock.business": "business hours count",

	// grants.go
	"grants.title":       "Grants",
	"grants.lead":        "Approvals that people remembered: similar actions pass without a question, within these bounds.",
	"grants.scope":       "Action",
	"grants.args":        "Arguments",
	"grants.by":          "Granted by",
	"grants.for":         "for %s",
	"grants.request":     "Request",
	"grants.uses":        "Uses",
	"grants.left.one":    "%d use left",
	"grants.left.other":  "%d uses left",
	"grants.used":        "used %d times",
	"grants.anyargs":     "any",
	"bound.is.eq":        "=",
	"bound.is.le":        "at most",
	"bound.is.ge":        "at least",
	"bound.is.prefix":    "begins with",
	"bound.is.in":        "is one of",
	"bound.is.any":       "any value",
	"grants.budget":      "at most %d of %s",
	"grants.until":       "Ends",
	"grants.revoke":      "Revoke",
	"grants.revoked":     "Revoked",
	"grants.ended":       "Ended",
	"grants.empty.title": "No grants",
	"grants.empty.text":  "An approver can remember an approval for similar actions, if the policy allows it.",

	"note.revoked": "The grant was revoked.",

	// analytics.go
	"analytics.title":        "Analytics",
	"analytics.period":       "Period",
	"analytics.days.one":     "%d day",
	"analytics.days.other":   "%d days",
	"analytics.csv":          "Download CSV",
	"analytics.retained":     "Runs that ended earlier were deleted; the numbers begin",
	"analytics.requests":     "Requests",
	"analytics.open":         "%d open",
	"analytics.todecide":     "Time to decide (median)",
	"analytics.p90":          "90 %% within %s",
	"analytics.p50":          "Median",
	"analytics.p90.short":    "90 %",
	"analytics.approved":     "Approved",
	"analytics.edited":       "%d with edits",
	"analytics.rejected":     "Rejected",
	"analytics.expired":      "%d expired",
	"analytics.byday":        "Decisions per day",
	"analytics.byhour":       "Decisions by hour of the day",
	"analytics.day":          "Day",
	"analytics.hour":         "Hour",
	"analytics.date":         "%d %s",
	"analytics.weekday":      "%s %s",
	"analytics.total":        "Decisions",
	"analytics.zone":         "Times in %s",
	"analytics.summary":      "%s: %d in all; the most, %d, at %s. The table below has all numbers.",
	"analytics.tip":          "%s: %d approved, %d answered, %d rejected, %d expired",
	"analytics.table":        "Show the numbers",
	"analytics.byrule":       "By rule",
	"analytics.bykind":       "By kind",
	"analytics.byaction":     "By action",
	"analytics.name":         "Name",
	"analytics.k.approved":   "Approved",
	"analytics.k.answered":   "Answered",
	"analytics.k.rejected":   "Rejected",
	"analytics.k.expired":    "Expired",
	"analytics.k.open":       "Open",
	"analytics.people":       "By person",
	"analytics.person":       "Person",
	"analytics.votes":        "Votes",
	"analytics.share":        "Share",
	"analytics.yes":          "Approvals",
	"analytics.reading":      "Reading time",
	"analytics.fast":         "Too fast",
	"analytics.late":         "Out of hours",
	"analytics.suspect":      "May not read",
	"analytics.hidden.one":   "%d other person is hidden; admins see all.",
	"analytics.hidden.other": "%d other people are hidden; admins see all.",
	"analytics.proposals":    "Rules that the history supports",
	"analytics.evidence":     "approved %d times by %d people, never edited",
	"analytics.empty.title":  "No decisions yet",
	"analytics.empty.text":   "Numbers appear with the first request in this period.",

	// me.go
	"me.title":           "Profile",
	"me.you":             "You",
	"me.name":            "Name",
	"me.account":         "Account",
	"me.roles":           "Roles",
	"me.zone":            "Time zone",
	"me.session":         "Session",
	"me.method":          "Signed in with",
	"me.method.key":      "API key",
	"me.method.oidc":     "Identity provider",
	"me.method.token":    "Token",
	"me.method.dev":      "Sign-in link",
	"me.method.password": "Password",
	"me.method.passkey":  "Passkey",
	"me.strength":        "Strength",

	"me.strength.slack_linked": "Linked chat account",
	"me.strength.token":        "One factor",
	"me.strength.sso":          "Identity provider",
	"me.strength.sso_mfa":      "Several factors",
	"me.strength.hardware":     "Several factors, with hardware",

	"me.since": "Since",
	"me.until": "Ends",
	"me.more":  "More",

	// docs.go
	"docs.title":      "API documentation",
	"docs.download":   "OpenAPI document",
	"docs.lead":       "Version %s. Programs authenticate with an API key in the header Authorization.",
	"docs.parts":      "Parts of the API",
	"docs.parameters": "Parameters",
	"docs.required":   "required",
	"docs.body":       "Body",
	"docs.responses":  "Responses",
}
