package tui

import (
	"time"

	"github.com/fermata-go/fermata/api"
)

// rejection explains why a decision was rejected.
type rejection struct {
	text string
	// freezes means that the displayed version cannot be decided any more.
	freezes bool
}

// rejections explains problem codes. Other codes are shown with the server's text.
var rejections = map[string]struct {
	text    string
	freezes bool
}{
	"already_decided":    {"Another person decided first.", true},
	"expired":            {"The deadline has passed: nothing was decided.", true},
	"superseded":         {"The run no longer waits for this: nothing was decided.", true},
	"digest_mismatch":    {"The request has changed: nothing was decided. Review it again.", true},
	"not_active":         {"The run has ended or has no open request: nothing was decided.", true},
	"not_retryable":      {"The run cannot be retried.", true},
	"not_found":          {"The server no longer knows this request.", true},
	"bad_answer":         {"The server rejected this answer; the request is still open.", false},
	"bad_request":        {"The server rejected this; nothing was changed.", false},
	"too_large":          {"The answer is too large.", false},
	"resume_id_reused":   {"This resume id was used for another decision. Go back and try again.", false},
	"not_eligible":       {"You are not an eligible approver:", false},
	"identity_mismatch":  {"The answer names another person:", false},
	"action_not_allowed": {"This is not allowed now:", false},
	"unauthenticated":    {"The server does not accept your API key.", false},
	"forbidden":          {"Your role does not allow this decision.", false},
}

// explain converts an error for people. It is not final if it is unknown whether the decision was
// recorded.
func explain(err error, now time.Time) (why rejection, final bool) {
	problem, ok := asProblem(err)
	if !ok || problem.Status >= 500 || problem.Status == 429 {
		return rejection{}, false
	}
	known, ok := rejections[problem.Code]
	if !ok {
		known.text = problem.Title + " (" + problem.Code + ")."
	}
	return rejection{text: known.text + details(problem, now), freezes: known.freezes}, true
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
