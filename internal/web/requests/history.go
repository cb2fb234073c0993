package requests

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// sentenceForm is a form of the sentences that the API returns, with the key of the text for the
// viewer. The groups of the form are the values of the text, in the same order.
type sentenceForm struct {
	form *regexp.Regexp
	key  string
}

func formsOf(pairs ...string) (list []sentenceForm) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, sentenceForm{regexp.MustCompile("^" + pairs[i] + "$"), pairs[i+1]})
	}
	return list
}

// historyForms are the forms of the entries of a history.
var historyForms = formsOf(
	"asked", "history.asked",
	"viewed it", "history.viewed",
	"claimed it", "history.claimed",
	"released it", "history.released",
	"commented", "history.commented",
	"asked for clarification", "history.askedback",
	`answered clarification \d+ of (.+)`, "history.replied",
	"asked (.+) to decide", "history.delegated",
	"snoozed it until (.+)", "history.snoozed",
	"ended the snooze", "history.woken",
	"moved the deadline to (.+), because of an outage", "history.outage",
	"moved the deadline to (.+)", "history.extended",
	"escalated it", "history.escalated",
	"escalated it: not decided in time", "history.escalatedlate",
	"(?:told|notified) inbox", "history.inbox",
	"(?:told|notified) (.+)", "history.notified",
	"reminded (.+)", "history.reminded",
	"paged (.+)", "history.paged",
	"edited (.+)", "history.edited",
	"restored the original arguments", "history.restored",
	"raised the requirement: (.+)", "history.raised",
	`opened stage (\d+ of \d+: .+)`, "history.stage",
	"lets (.+) decide too", "history.widened",
	"approved(?: it)?", "history.approved",
	"rejected it", "history.rejected",
	"rejected it: (.+)", "history.rejectedwhy",
	"decided it: approve, effective at (.+)", "history.approvepending",
	"decided it: reject, effective at (.+)", "history.rejectpending",
	"decided it: answer, effective at (.+)", "history.answerpending",
	"withdrew the vote", "history.withdrew",
	"closed it: approve", "history.closedapprove",
	"closed it: reject", "history.closedreject",
	"closed it: answer", "history.closedanswer",
	"closed it: return", "history.closedreturn",
	"closed it: expire", "history.closedexpire",
)

// progressForms are the forms of the parts of the progress of the votes.
var progressForms = formsOf(
	`(\d+) of (\d+)`, "progress.votes",
	`stage (\d+) of (\d+)`, "progress.stage",
	"needs (.+)", "progress.needs",
	`(\d+) of (\d+) against`, "progress.against",
	"approved by (.+)", "progress.approved",
	"rejected by (.+)", "progress.rejected",
	"answered by (.+)", "progress.answered",
)

// reword words a sentence of the API for the viewer; false for a sentence of another form, such as
// one of a newer server.
func reword(v *page.Visit, forms []sentenceForm, sentence string) (string, bool) {
	for _, f := range forms {
		match := f.form.FindStringSubmatch(sentence)
		if match == nil {
			continue
		}
		var values []any
		for _, value := range match[1:] {
			values = append(values, v.LocalTimes(value))
		}
		return v.T(f.key, values...), true
	}
	return v.LocalTimes(sentence), false
}

// HistoryText returns the sentence of an entry of the history.
func (m *Model) HistoryText(v *page.Visit, e api.HistoryEntry) string {
	text, _ := reword(v, historyForms, e.Text)
	return text
}

// ProgressText returns the votes so far and those that are needed, or who decided.
func (m *Model) ProgressText(v *page.Visit) string {
	if m.Activity == nil {
		return ""
	}
	progress := cmp.Or(m.Activity.Progress, m.Activity.Summary)
	var parts []string
	for part := range strings.SplitSeq(progress, ", ") {
		text, ok := reword(v, progressForms, part)
		if !ok {
			return v.LocalTimes(progress)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
