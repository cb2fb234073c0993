package desk

import (
	"errors"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
)

// checkConditions refuses conditions of an approval that are invalid or do not hold now.
func (d *update) checkConditions(c fermata.Conditions) error {
	if !c.Until.IsZero() && !d.now.Before(c.Until) {
		return d.refuse(ErrInvalidConditions, "until is in the past: "+formatTime(c.Until))
	}
	if c.OnlyIf == "" || !slices.Contains(decidingCommands, d.command) {
		return nil // only a decision has the arguments
	}
	if d.env.CheckCondition == nil {
		return d.refuse(ErrInvalidConditions, "onlyIf is not supported here")
	}
	args := d.env.Args
	if d.r.Edit != nil {
		args = d.r.Edit.Args
	}
	err := d.env.CheckCondition(c.OnlyIf, args)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrPolicyUnavailable):
		return err
	}
	return d.refuse(ErrInvalidConditions, "onlyIf: "+err.Error())
}

// decidingCommands are the commands that can approve an action.
var decidingCommands = []CommandName{CommandApprove, CommandEdit}

// conditionsOf returns the conditions of the approvals of these people together.
func (r Request) conditionsOf(people []string) (all fermata.Conditions) {
	for _, v := range r.Votes {
		if v.Verb == requirement.VerbApprove && slices.Contains(people, v.By) {
			all = all.And(v.Conditions)
		}
	}
	return all
}

// conditionsText describes an approval in the history of a request.
func conditionsText(c fermata.Conditions) string {
	text := "approved"
	if !c.Until.IsZero() {
		text += " until " + formatTime(c.Until)
	}
	if c.OnlyIf != "" {
		text += " on a condition" // without it: it may contain sensitive values
	}
	return text
}
