package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// acts are the actions other than a decision. The schema is that of the form, whose titles are the
// labels; an action without one has no form. The server lists the verb if the request allows it.
var acts = []struct {
	verb            verb
	act, serverVerb string
	schema          string
	done            string
}{
	{verbClarify, client.ActionClarify, "ask", `{"properties":{"text":{"type":"string","title":"question"}},"required":["text"]}`, "The agent was asked."},
	{verbComment, client.ActionComment, "", `{"properties":{"text":{"type":"string","title":"comment"}},"required":["text"]}`, "The comment was added."},
	{verbClaim, client.ActionClaim, "claim", "", "Others see that you are working on it."},
	{verbRelease, client.ActionRelease, "", "", "It is no longer claimed."},
	{verbUndo, client.ActionUndo, "", "", "The decision has no effect."},
	{verbDelegate, client.ActionDelegate, "delegate", `{"properties":{"to":{"type":"string","title":"to","description":"The name of another eligible approver."},"text":{"type":"string","title":"reason"}},"required":["to"]}`, "The delegate was notified."},
	{verbSnooze, client.ActionSnooze, "snooze", `{"properties":{"until":{"type":"string","title":"until","description":"A duration, such as 30m, 4h or 2d, or a time, such as 2026-11-16T09:00:00Z. The deadline does not change."}},"required":["until"]}`, "Reminders are paused."},
	{verbEscalate, client.ActionEscalate, "escalate", `{"properties":{"text":{"type":"string","title":"reason"}},"required":["text"]}`, "The next step of its route was run."},
}

// actActions returns the actions other than a decision that a person may take.
func actActions(r api.Request, me string) (available []action) {
	activity := r.Activity
	for _, a := range acts {
		mine := activity.Claim != nil && activity.Claim.By == me && me != ""
		allowed := slices.Contains(activity.Verbs, a.serverVerb) && activity.IneligibleReason == ""
		switch a.verb {
		case verbComment:
			allowed = true
		case verbClaim:
			allowed = allowed && !mine
		case verbRelease:
			allowed = mine
		case verbUndo:
			allowed = activity.Pending != nil && activity.Pending.By == me && me != ""
		default:
		}
		if allowed {
			available = append(available, action{verb: a.verb, act: a.act, form: formOf(a.verb, a.schema, activity)})
		}
	}
	return available
}

// formOf returns the schema of the form of an action. Delegates are a list if the server knows all.
func formOf(v verb, schema string, activity *api.Activity) json.RawMessage {
	if v != verbDelegate || activity.OtherDelegates || len(activity.Delegates) == 0 {
		return json.RawMessage(schema)
	}
	names, _ := json.Marshal(activity.Delegates) // texts always have a JSON
	return json.RawMessage(strings.Replace(schema, `"to":{"type":"string",`, `"to":{"enum":`+string(names)+`,`, 1))
}

// doneText says what an action did.
func (o action) doneText() string {
	for _, a := range acts {
		if a.verb == o.verb {
			return verbs[o.verb].done + ". " + a.done + " The request is still open."
		}
	}
	return verbs[o.verb].done + "."
}

// actBody returns the body of an action from the value of its form.
func actBody(value json.RawMessage, now time.Time) (json.RawMessage, error) {
	body, _ := schemaform.ParseObject(value)
	for i, m := range body {
		var text string
		if err := json.Unmarshal(m.Value, &text); err != nil {
			return nil, err
		}
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("say something")
		}
		if m.Name == "until" {
			at, err := parseUntil(strings.TrimSpace(text), now)
			if err != nil {
				return nil, err
			}
			body[i].Value = schemaform.String(at.UTC().Format(time.RFC3339))
		}
	}
	return body.JSON(), nil
}

// parseUntil parses a time, or a duration from now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	days, isDays := strings.CutSuffix(text, "d")
	if isDays {
		text = days + "h"
	}
	d, err := time.ParseDuration(text)
	if isDays {
		d *= 24
	}
	if err != nil || d <= 0 {
		return now, fmt.Errorf("%q is neither a duration, such as 30m, 4h or 2d, nor a time, such as 2026-11-16T09:00:00Z", strings.TrimSuffix(text, "h")+map[bool]string{true: "d"}[isDays])
	}
	return now.Add(d).Truncate(time.Second), nil
}

// standing returns what people did with an open request, in a few words: "escalated, snoozed until
// at 09:00:00, you approved".
func standing(activity *api.Activity, me string, now time.Time) (parts []string) {
	if activity == nil {
		return nil
	}
	if slices.ContainsFunc(activity.History, func(h api.HistoryEntry) bool { return h.Event == "escalated" }) {
		parts = append(parts, "escalated")
	}
	if until := activity.SnoozedUntil; until != nil && now.Before(*until) {
		parts = append(parts, "snoozed until "+strings.TrimPrefix(strings.TrimPrefix(clockOf(*until, now), "at "), "on "))
	}
	if claim := activity.Claim; claim != nil && claim.By == me {
		parts = append(parts, "claimed by you")
	} else if claim != nil {
		parts = append(parts, "claimed by "+claim.By)
	}
	if slices.ContainsFunc(activity.Clarifications, func(c api.Clarification) bool { return c.Reply == nil }) {
		parts = append(parts, "waits for a reply of the requester")
	}
	if vote := ownVote(activity, me); vote != nil {
		parts = append(parts, "you "+pastTense(vote.Verb))
	}
	return parts
}

// ownVote returns the vote of a person on the current version of the request, or nil.
func ownVote(activity *api.Activity, me string) *api.Vote {
	if activity == nil || me == "" {
		return nil
	}
	for _, v := range slices.Backward(activity.Votes) {
		if v.By == me && (activity.Edit == nil || !activity.Edit.At.After(v.At)) {
			return &v
		}
	}
	return nil
}

func pastTense(verb string) string {
	switch verb {
	case "approve":
		return "approved"
	case "reject":
		return "rejected"
	case "edit":
		return "approved with edits"
	}
	return "voted " + verb
}
