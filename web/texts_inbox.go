package web

// inboxTexts are the texts of the inbox and of lists of requests.
var inboxTexts = translation{
	"inbox.title":       "Inbox",
	"inbox.search":      "tool:refund age:>1h",
	"inbox.searchlabel": "Search requests",
	"inbox.tabs":        "Lists",
	"inbox.requests":    "Requests",
	"inbox.tab.mine":    "For me",
	"inbox.tab.all":     "All",
	"inbox.tab.snoozed": "Snoozed",
	"inbox.tab.done":    "Done",
	"inbox.similar":     "similar requests:",
	"inbox.batch":       "Review as batch",
	"inbox.new":         "New requests: show them",
	"inbox.next":        "More requests",
	"inbox.choose":      "Choose a request on the left.",
	"inbox.empty.title": "Nothing is waiting for you",
	"inbox.empty.text":  "When an agent needs an approval, an answer or a review, its request appears here. To try it, start a run:",
	"inbox.empty.try":   `fermata run inproc:content-review '{"topic":"tea"}'`,
	"inbox.none.title":  "No request matches",
	"inbox.none.text":   "Search for words, or use tool: kind: rule: run: graph: from: risk: age: and left:.",

	"risk.high":   "High risk",
	"risk.medium": "Medium risk",
	"risk.low":    "Low risk",
	"risk.none":   "No risk rating",

	"state.approve":   "Approved",
	"state.reject":    "Rejected",
	"state.return":    "Sent back",
	"state.answer":    "Answered",
	"state.expire":    "Expired",
	"state.withdrawn": "Withdrawn: the run no longer waits for this",
	"state.by":        "by",
}
