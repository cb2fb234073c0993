package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/tool"
)

const yourAnswer = "Your answer"

// approvalForm shows approval requests.
var approvalForm = FormFor(fermata.Approval,
	func(d *Dialogue, q fermata.ApprovalRequest) string {
		d.Row("what", q.Action)
		d.Row("summary", q.Summary)
		d.rows("with", q.Args)
		d.Row("rule", strings.TrimPrefix(strings.TrimSuffix(q.Rule+": "+q.Reason, ": "), ": "))
		d.Option("y", "do exactly this")
		d.Option("n REASON", "do not; the agent is told the reason")
		if !q.Fixed {
			d.Option("e FIELD=VALUE", "change it first; e FIELD for several lines")
		}
		return yourAnswer
	}, readDecision)

// pending is an unfinished decision.
type pending struct {
	fermata.Decision
	question fermata.ApprovalRequest
	args     json.RawMessage // as they would be used now
}

// readDecision continues after an edit, so that an input mistake does not lose the edit.
func readDecision(ctx context.Context, d *Dialogue, q fermata.ApprovalRequest, line string) (fermata.Decision, error) {
	p := pending{question: q, args: q.Args}
	for {
		done, err := p.read(ctx, d, line)
		if done || isLeaving(ctx, err) || err != nil && p.Args == nil {
			p.By, p.At = d.By(), time.Now().UTC()
			return p.Decision, err
		}
		if err != nil {
			d.ShowError(err)
		}
		if line, err = d.Prompt(ctx, yourAnswer); err != nil {
			return p.Decision, err
		}
	}
}

// read processes a line and reports whether the decision is complete.
func (p *pending) read(ctx context.Context, d *Dialogue, line string) (done bool, err error) {
	word, rest := firstWord(line)
	switch word {
	case "y", "yes":
		p.Verb, p.Reason = fermata.VerbApprove, rest
		return true, nil
	case "n", "no":
		p.Verb, p.Args, p.Reason = fermata.VerbReject, nil, rest
		if rest == "" {
			p.Reason, err = d.Prompt(ctx, "Why not? The agent is told")
		}
		return err == nil, err
	case "e", "edit":
		if err := p.edit(ctx, d, rest); err != nil {
			return false, err
		}
		d.rows("now with", p.args)
		return false, nil
	}
	return false, fmt.Errorf("“%s” is not a valid answer", line)
}

// edit changes one argument. An invalid value changes nothing.
func (p *pending) edit(ctx context.Context, d *Dialogue, change string) error {
	name, typed, direct := strings.Cut(change, "=")
	name = strings.TrimSpace(name)
	if p.question.Fixed {
		return errors.New("this can only be approved or refused unchanged")
	}
	if !direct {
		var err error
		if typed, err = severalLines(ctx, d, name); err != nil {
			return err
		}
	}
	v, err := value(p.question.ArgsSchema, name, strings.TrimSpace(typed))
	if err != nil {
		return err
	}
	changed, err := with(p.args, name, v)
	if err != nil {
		return err
	}
	decision := fermata.Yes("")
	decision.Args = changed
	if err := d.check(decision); err != nil {
		return err
	}
	p.Args, p.args = changed, changed
	return nil
}

func severalLines(ctx context.Context, d *Dialogue, name string) (string, error) {
	var lines []string
	for {
		line, err := d.Prompt(ctx, name+" (a dot ends it)")
		if err != nil || line == "." {
			return strings.Join(lines, "\n"), err
		}
		lines = append(lines, line)
	}
}

// inDoubtForm asks about effects in doubt.
var inDoubtForm = FormFor(fermata.EffectInDoubt,
	func(d *Dialogue, q fermata.InDoubtRequest) string {
		d.Row("what", q.Action+" was started, and its outcome is unknown")
		d.rows("with", q.Args)
		d.Row("error", q.Error)
		d.Row("look for", "the key "+q.Key+" at its target")
		d.Option("y RECEIPT", "it happened; the agent is told the receipt")
		d.Option("n", "it did not happen, and is performed now")
		return "Did it happen?"
	},
	func(ctx context.Context, d *Dialogue, q fermata.InDoubtRequest, line string) (said fermata.EffectResolution, err error) {
		said.By = d.By()
		word, rest := firstWord(line)
		switch word {
		case "n", "no":
			said.Reason = rest
			return said, nil
		case "y", "yes":
			for rest == "" {
				if rest, err = d.Prompt(ctx, "What did it say? The agent is told"); err != nil {
					return said, err
				}
			}
			said.Happened = true
			said.Receipt, err = receipt(q.ReceiptSchema, rest)
			return said, err
		}
		return said, fmt.Errorf("“%s” is neither y nor n", line)
	})

// receipt converts a text to a receipt, if possible: the results of tools have a field for it.
func receipt(schema json.RawMessage, typed string) (json.RawMessage, error) {
	if json.Valid([]byte(typed)) {
		return json.RawMessage(typed), nil
	}
	text, err := value(schema, "text", typed)
	if err != nil {
		return nil, errors.New("write the receipt as JSON")
	}
	return with(json.RawMessage("{}"), "text", text)
}

const decline = "/decline"

// responseForm lets a person answer instead of a tool.
var responseForm = FormFor(tool.Response,
	func(d *Dialogue, q tool.ResponseRequest) string {
		d.Row("what", q.Tool)
		d.Row("summary", q.Description)
		d.rows("with", q.Args)
		d.Option("TEXT", "the agent gets it as the answer")
		d.Option(decline+" REASON", "no answer")
		return yourAnswer
	},
	func(_ context.Context, d *Dialogue, _ tool.ResponseRequest, line string) (tool.HumanResponse, error) {
		if word, reason := firstWord(line); word == decline {
			return tool.HumanResponse{Declined: true, Reason: reason, By: d.By()}, nil
		}
		return tool.HumanResponse{Text: line, By: d.By()}, nil
	})

// completionForm asks for missing arguments.
var completionForm = FormFor(tool.Completion,
	func(d *Dialogue, q tool.CompletionRequest) string {
		d.Row("what", q.Tool+" needs more information")
		d.rows("so far", q.Args)
		for _, m := range q.Missing {
			d.Row("missing", m.Field)
		}
		d.Option(decline+" REASON", "no answer; the agent is told the reason")
		if len(q.Missing) == 0 {
			return yourAnswer
		}
		return q.Missing[0].Question
	}, readFields)

func readFields(ctx context.Context, d *Dialogue, q tool.CompletionRequest, line string) (tool.CompletedArgs, error) {
	answer := tool.CompletedArgs{Fields: make(map[string]json.RawMessage), By: d.By()}
	for i := 0; i < len(q.Missing); {
		m := q.Missing[i]
		if word, reason := firstWord(line); word == decline {
			return tool.CompletedArgs{Declined: true, Reason: reason, By: d.By()}, nil
		}
		v, err := value(q.ArgsSchema, m.Field, line)
		if err == nil {
			answer.Fields[m.Field] = v
			i++
		} else {
			d.ShowError(err)
		}
		if i == len(q.Missing) {
			break
		}
		if line, err = d.Prompt(ctx, q.Missing[i].Question); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

// limitForm asks whether a run may exceed a limit.
var limitForm = FormFor(agent.OverLimit,
	func(d *Dialogue, q agent.LimitReached) string {
		d.Row("what", fmt.Sprintf("the run would exceed its limit of %g %s", q.Max, q.Limit))
		d.Row("used", fmt.Sprintf("%d model calls, %d tool calls, %d tokens", q.Total.ModelCalls, q.Total.ToolCalls, q.Total.InputTokens+q.Total.OutputTokens))
		d.Option("y", "continue, with the same amount again")
		d.Option("y NUMBER", "continue, with this much more")
		d.Option("n REASON", "stop here")
		return yourAnswer
	},
	func(_ context.Context, d *Dialogue, _ agent.LimitReached, line string) (agent.LimitDecision, error) {
		decision := agent.LimitDecision{By: d.By()}
		word, rest := firstWord(line)
		switch word {
		case "y", "yes":
			decision.Continue = true
			if rest == "" {
				return decision, nil
			}
			more, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				return decision, fmt.Errorf("“%s” is not a number", rest)
			}
			decision.More = more
			return decision, nil
		case "n", "no":
			decision.Reason = rest
			return decision, nil
		}
		return decision, fmt.Errorf("“%s” is neither y nor n", line)
	})
