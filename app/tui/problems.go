package tui

import (
	"time"

	"github.com/fermata-go/fermata/api"
)

// rejection is why a decision was not taken, for people.
type rejection struct {
	text string
	// freezes: on what is shown, nothing can be decided any more.
	freezes bool
}

// rejections explains the codes of the API. Every other code is shown with what the server says.
var rejections = map[string]struct {
	text    string
	freezes bool
}{
	"already_decided":  {"Somebody was faster.", true},
	"expired":          {"The deadline has passed: nothing was decided.", true},
	"superseded":       {"The run no longer asks this: nothing was decided.", true},
	"digest_mismatch":  {"What the server would decide on is not what you saw: nothing was decided. Look again.", true},
	"not_active":       {"The run is over or waits for nothing: nothing was decided.", true},
	"not_found":        {"The server no longer knows this request.", true},
	"bad_answer":       {"The server does not take this answer; the request is still open.", false},
	"bad_request":      {"The server does not take this; nothing was changed.", false},
	"too_large":        {"The answer is too large.", false},
	"resume_id_reused": {"This decision's name belongs to another one. Go back and try again.", false},
	"not_yours":        {"Your word on this request does not count:", false},
	"not_possible":     {"This is not possible now:", false},
	"unauthenticated":  {"The server does not know your key (any more).", false},
	"forbidden":        {"Your role may not decide this.", false},
}

// explain makes of an error what a person needs to know. It is not final if nobody knows whether the decision was taken.
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

// details are what the server says about this one case.
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
