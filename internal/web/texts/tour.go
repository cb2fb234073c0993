package texts

// tourTexts are the texts of the tour of the demo.
var tourTexts = Translation{
	"tour.title":      "What to try",
	"tour.close":      "Close the tour",
	"tour.edit":       "Open a refund, lower the amount, approve it.",
	"tour.edit.link":  "Refunds",
	"tour.batch":      "Decide the similar refunds together. The large one is left out.",
	"tour.ask":        "Ask an agent a question. Its answer appears while you wait.",
	"tour.run":        "Start a run yourself and answer its question.",
	"tour.run.link":   "Content review",
	"tour.audit":      "Find your decision in the audit log.",
	"tour.audit.link": "Audit",
	"tour.keys":       "Sample agents keep asking. Press ? for the keys.",
}
