package tui

import (
	"cmp"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/refusal"
)

// rejection explains why a decision was rejected.
type rejection struct {
	text string
	// freezes means that the displayed version cannot be decided any more.
	freezes bool
}

// rejections explains problem codes. Other codes are shown with their title.
var rejections = map[string]struct {
	text    string
	freezes bool
	// sentence says that the server's detail is shown in place of the text.
	sentence bool
}{
	"already_decided":       {refusal.Sentence("already_decided", ""), true, true},
	"expired":               {refusal.Sentence("expired", ""), true, true},
	"superseded":            {refusal.Sentence("withdrawn", ""), true, true},
	"not_eligible":          {refusal.Sentence("not_yours", ""), false, true},
	"identity_mismatch":     {refusal.Sentence("identity_mismatch", ""), false, true},
	"action_not_allowed":    {refusal.Sentence("not_allowed", ""), false, true},
	"earlier_stage":         {refusal.Sentence("earlier_stage", ""), false, true},
	"decision_pending":      {refusal.Sentence("decision_pending", ""), false, true},
	"invalid_conditions":    {refusal.Sentence("invalid_conditions", ""), false, true},
	"delegate_not_eligible": {refusal.Sentence("delegate_not_eligible", ""), false, true},
	"not_confirmed":         {refusal.Sentence("not_confirmed", ""), false, true},
	"digest_mismatch":       {"The request has changed: nothing was decided. Review it again.", true, false},
	"not_active":            {"The run has ended or has no open request: nothing was decided.", true, false},
	"not_retryable":         {"The run cannot be retried.", true, false},
	"not_found":             {"The server no longer knows this request.", true, false},
	"bad_answer":            {"The server rejected this answer; the request is still open.", false, false},
	"bad_request":           {"The server rejected this; nothing was changed.", false, false},
	"too_large":             {"The answer is too large.", false, false},
	"resume_id_reused":      {"This resume id was used for another decision. Go back and try again.", false, false},
	"unauthenticated":       {"The server does not accept your API key.", false, false},
	"forbidden":             {"Your role does not allow this decision.", false, false},
}

// explain converts an error for people. It is not final if it is unknown whether the decision was
// recorded.
func explain(err error, now time.Time) (why rejection, final bool) {
	problem, ok := asProblem(err)
	if !ok || problem.Status >= 500 || problem.Status == 429 {
		return rejection{}, false
	}
	known, ok := rejections[problem.Code]
	shown := *problem
	switch {
	case !ok:
		known.text = problem.Title + " (" + problem.Code + ")."
	case known.sentence:
		known.text, shown.Detail = cmp.Or(problem.Detail, known.text), ""
	}
	return rejection{text: known.text + details(&shown, now), freezes: known.freezes}, true
}

// details returns the server's text for this case.
func details(p *api.Problem, now time.Time) string {
	if d := p.Decided; d != nil {
		return " " + d.Verdict + " by " + d.By + " " + clockOf(d.At, now) + "."
	}
	text := ""
	for _, field := range p.Fields {
		text += " " + field.Message
		if field.Location != "" {
			text += " (" + field.Location + ")"
		}
	}
	if text == "" && p.Detail != "" {
		text = " " + p.Detail
	}
	return text
}
