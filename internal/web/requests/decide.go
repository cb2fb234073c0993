package requests

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
)

// outcomeWait is how long a page waits for the run after a decision.
const outcomeWait = 2 * time.Second

// decideWith returns the action that decides with an answer. First it records what the page showed.
func decideWith(answer func(f *actionForm) (json.RawMessage, error)) func(*Pages, *page.Visit, *actionForm) (string, error) {
	return func(s *Pages, v *page.Visit, f *actionForm) (string, error) {
		said, err := answer(f)
		if err != nil {
			return "", err
		}
		f.Held, err = s.decide(v, f.ID, f.seenRendering(), f.decision(said))
		if err != nil {
			return "", err
		}
		return f.note(v), nil
	}
}

// seenRendering returns what the page showed, and how much of it was on the screen.
func (f *actionForm) seenRendering() api.Rendering {
	r := f.Rendering()
	r.Visible = f.Visible
	return r
}

// note returns the key of a note that says what became of the decision.
func (f *actionForm) note(v *page.Visit) string {
	if f.Held {
		return "note.held"
	}
	if r, err := v.API.Request(v.Context(), f.ID); err == nil && r.State == StatePending && r.Activity != nil && r.Activity.Voted {
		return "note.voted"
	}
	return "note." + f.Act
}

// decide records what the page showed, and decides with that. It reports whether the decision waits
// for the end of its undo window.
func (s *Pages) decide(v *page.Visit, id string, rendering api.Rendering, decision api.Decide) (held bool, err error) {
	if err := recordView(v, id, decision.Shown, rendering); err != nil {
		return false, err
	}
	decision.Rendering = rendering.Hash
	_, err = v.API.DecideWithin(v.Context(), id, decision, outcomeWait)
	if pending, ok := errors.AsType[*client.PendingError](err); ok {
		return pending.EffectiveAt != nil, nil
	}
	return false, err
}

// decision returns the decision of the form with an answer.
func (f *actionForm) decision(answer json.RawMessage) api.Decide {
	return api.Decide{ResumeID: f.Key, Answer: answer, Shown: f.Shown, Confirm: f.Typed}
}

// approveAnswer approves, perhaps under conditions; f is nil in a batch.
func approveAnswer(f *actionForm) (json.RawMessage, error) {
	d := fermata.Decision{Verb: fermata.VerbApprove}
	if f != nil && f.Act == "approve" {
		d.Conditions.OnlyIf = f.OnlyIf
		if f.Until != "" {
			var err error
			if d.Conditions.Until, err = time.Parse(time.RFC3339, f.Until); err != nil {
				return nil, &missingError{"action.until.invalid"}
			}
		}
	}
	return json.Marshal(d)
}

func rejectAnswer(f *actionForm) (json.RawMessage, error) {
	switch {
	case f.Model != nil && len(f.RejectReasons()) > 0 && f.Code == "":
		return nil, &missingError{"action.needrejectcode"}
	case f.Text == "" && f.Code == "":
		return nil, &missingError{"action.needreason"}
	}
	d := fermata.Decision{Verb: fermata.VerbReject, Reason: f.Text}
	if f.Code != "" {
		d.Codes = []string{f.Code}
	}
	return json.Marshal(d)
}

func returnAnswer(f *actionForm) (json.RawMessage, error) {
	if f.Text == "" {
		return nil, &missingError{"action.needreason"}
	}
	return json.Marshal(fermata.Decision{Verb: fermata.VerbReturn, Reason: f.Text})
}

// editAnswer approves edited arguments, or continues a held run with an edited state.
func editAnswer(f *actionForm) (json.RawMessage, error) {
	value, err := f.value()
	if err != nil || f.Approval == nil {
		return value, err
	}
	if len(diffOf(f.root.Original(), value)) == 0 {
		return nil, &missingError{"action.nochange"}
	}
	if len(f.EditReasons()) > 0 && f.Code == "" {
		return nil, &missingError{"action.needcode"}
	}
	d := fermata.Decision{Verb: fermata.VerbApprove, Args: value, Reason: f.Text}
	if f.Code != "" {
		d.Codes = []string{f.Code}
	}
	return json.Marshal(d)
}

func respondAnswer(f *actionForm) (json.RawMessage, error) { return f.value() }

// approveAndRemember approves, and then creates a grant with the bounds of the form.
func approveAndRemember(s *Pages, v *page.Visit, f *actionForm) (string, error) {
	uses, err := strconv.Atoi(f.Uses)
	span, ok := f.chosenSpan(v)
	if err != nil || uses < 1 || !ok {
		return "", &missingError{"action.needbounds"}
	}
	relax, err := relaxed(f.Bounds)
	if err != nil {
		return "", err
	}
	answer, err := approveAnswer(f)
	if err == nil {
		f.Held, err = s.decide(v, f.ID, f.seenRendering(), f.decision(answer))
	}
	if err != nil {
		return "", err
	}
	_, err = v.API.CreateGrant(v.Context(), f.ID, api.CreateGrant{Seconds: int64(span.Seconds()), Uses: uses, Relax: relax}, f.Key+"-grant")
	if err != nil {
		v.Shell.Config.Log.Warn("grant not created", "request", f.ID, "err", err)
		return "note.notremembered", nil // the approval is recorded
	}
	return "note.remember", nil
}

// act returns an action other than a decision.
func act(name string) func(*Pages, *page.Visit, *actionForm) (string, error) {
	return func(_ *Pages, v *page.Visit, f *actionForm) (string, error) {
		body := api.RequestAction{Text: f.Text}
		switch name {
		case client.ActionComment, client.ActionClarify, client.ActionAbandon:
			if f.Text == "" {
				return "", &missingError{"action.needtext"}
			}
		case client.ActionDelegate:
			if body.To = f.To; f.To == "" {
				return "", &missingError{"action.needto"}
			}
		case client.ActionSnooze, client.ActionExtend:
			span, ok := f.chosenSpan(v)
			if !ok {
				return "", &missingError{"action.needspan"}
			}
			until := v.Now.Add(span).Truncate(time.Minute) // the same form gets the same time
			if name == client.ActionExtend {
				until = f.Deadline.Add(span)
			}
			body = api.RequestAction{Until: &until}
		}
		_, err := v.API.ActOnce(v.Context(), f.ID, name, body, f.Key)
		return "note." + f.Act, err
	}
}

// reveal shows the request with its masked values. The server records who saw them.
func (s *Pages) reveal(v *page.Visit, f *actionForm) (page.Response, error) {
	r, err := v.API.Reveal(v.Context(), f.ID)
	if err != nil {
		return nil, err
	}
	d, err := s.PageData(v, r)
	if err != nil {
		return nil, err
	}
	masked := f.Rendering()
	d.masked, d.Back = &masked, "/inbox"
	return page.Page{Name: "request", Title: plainText(string(d.Sentence)), Nav: "/inbox", Scripts: d.Scripts("request.js", "live.js"), Data: d}, nil
}

func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}
