package web

import (
	"fmt"
)

// translation has the texts of one language by key.
type translation map[string]string

// text returns the text of a key with its arguments in the notation of fmt. A missing key is shown,
// so that it is noticed.
func (t translation) text(key string, args ...any) string {
	text, ok := t[key]
	if !ok {
		return "⟪" + key + "⟫"
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// count returns the text of key.one or key.other for a number, which is the first argument.
func (t translation) count(key string, n int, args ...any) string {
	form := ".other"
	if n == 1 {
		form = ".one"
	}
	return t.text(key+form, append([]any{n}, args...)...)
}

// english has all texts of the pages. Keys begin with the name of the page.
var english = translation{
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

	"time.ago":     "%s ago",
	"time.in":      "in %s",
	"time.left":    "%s left",
	"time.now":     "now",
	"time.overdue": "overdue",
	"time.seconds": "%d s",
	"time.minutes": "%d min",
	"time.hours":   "%d h",
	"time.days":    "%d d",

	"value.fold":             "Show all (%s)",
	"value.empty":            "empty",
	"value.characters.one":   "%d character",
	"value.characters.other": "%d characters",
	"value.items.one":        "%d item",
	"value.items.other":      "%d items",

	"error.form":                  "The form could not be read.",
	"error.back":                  "Go to the inbox",
	"error.signin":                "Sign in",
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

	// inbox.go
	"inbox.title":       "Inbox",
	"inbox.empty.title": "Nothing is waiting for you",
	"inbox.empty.text":  "When an agent needs an approval, an answer or a review, its request appears here.",

	// request.go
	// runs.go
	// graphs.go
	// policies.go
	// routes_page.go
	// grants.go
	// audit.go
	// analytics.go
	// deliveries.go
	// me.go
	// admin.go
	// docs.go
}
