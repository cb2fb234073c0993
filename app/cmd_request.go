package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/desk"
)

// requestCommands are what people do with requests beside deciding, and what those do who say how it is decided.
type requestCommands struct {
	Claim    claimCommand    `cmd:"" group:"people" help:"Look after a request; others can still decide."`
	Release  releaseCommand  `cmd:"" group:"people" help:"Look after a request no longer."`
	Comment  commentCommand  `cmd:"" group:"people" help:"Say something to all who look at a request."`
	Ask      clarifyCommand  `cmd:"" group:"people" help:"Ask the run something before you decide; the request stays open."`
	Reply    replyCommand    `cmd:"" group:"people" help:"Answer what was asked back, for the run."`
	Delegate delegateCommand `cmd:"" group:"people" help:"Have somebody else decide, who may."`
	Snooze   snoozeCommand   `cmd:"" group:"people" help:"Leave everybody in peace for a while; the deadline stays."`
	Extend   extendCommand   `cmd:"" group:"people" help:"Move the deadline of a request."`
	Escalate escalateCommand `cmd:"" group:"people" help:"Take the next step of the route now."`
	Escape   abandonCommand  `cmd:"" group:"people" help:"Give up the task that a request is part of: the run is ended."`
	Remember grantsCreate    `cmd:"" group:"people" help:"Have a yes of yours remembered, within bounds."`
	Grants   grantsCommands  `cmd:"" group:"people" help:"What is remembered, and how to take it back."`
	Stats    statsCommand    `cmd:"" group:"people" help:"What came of requests: how long, how often, who, which rule."`

	Policy policyCommands `cmd:"" group:"rules" help:"The rules that say what is asked of whom."`
	Routes routesCommands `cmd:"" group:"rules" help:"The ways on which people are told."`
}

// actionFlags are what all acts take.
type actionFlags struct {
	remote
	ID string `arg:"" help:"The id of the request."`
}

// act does something with the request, and says where it stands then.
func (c actionFlags) apply(ctx context.Context, p *program, act string, body api.RequestAction) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	r, err := to.Act(ctx, c.ID, act, body)
	if err != nil {
		return err
	}
	return p.print(r, func(w io.Writer) {
		standing := r.State
		if r.Activity != nil {
			standing = r.Activity.Summary
			if r.Activity.State == string(desk.StateWithdrawn) {
				standing = r.Activity.State
			}
		}
		fmt.Fprintf(w, "%s\t%s\n", r.ID, oneLine(standing))
	})
}

type claimCommand struct{ actionFlags }

// Run claims.
func (c *claimCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionClaim, api.RequestAction{})
}

type releaseCommand struct{ actionFlags }

// Run takes a claim back.
func (c *releaseCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionRelease, api.RequestAction{})
}

type commentCommand struct {
	actionFlags
	Text string `arg:"" help:"What you want to say."`
}

// Run comments.
func (c *commentCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionComment, api.RequestAction{Text: c.Text})
}

type clarifyCommand struct {
	actionFlags
	Question string `arg:"" help:"What you want to know."`
}

// Run asks back.
func (c *clarifyCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionClarify, api.RequestAction{Text: c.Question})
}

type replyCommand struct {
	actionFlags
	Answer string `arg:"" help:"The answer."`
	To     int    `name:"question" help:"The number of the question; the first that has no answer by default." placeholder:"N"`
}

// Run answers what was asked back.
func (c *replyCommand) Run(ctx context.Context, p *program) error {
	if c.To < 0 {
		return usage("--question: questions are counted from 1")
	}
	if c.To == 0 {
		to, err := c.client()
		if err != nil {
			return err
		}
		r, err := to.Request(ctx, c.ID)
		if err != nil {
			return err
		}
		if c.To = openClarification(r.Activity); c.To == 0 {
			return fmt.Errorf("%w: %s", errNoClarification, c.ID)
		}
	}
	return c.apply(ctx, p, client.ActionReply, api.RequestAction{Text: c.Answer, Clarification: c.To})
}

// openClarification is the number of the first question without an answer, from 1; 0 if there is none.
func openClarification(life *api.Activity) int {
	if life == nil {
		return 0
	}
	for i, q := range life.Clarifications {
		if q.Reply == nil {
			return i + 1
		}
	}
	return 0
}

type delegateCommand struct {
	actionFlags
	To     string `arg:"" help:"To whom."`
	Reason string `help:"Why."`
}

// Run delegates.
func (c *delegateCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionDelegate, api.RequestAction{To: c.To, Text: c.Reason})
}

// untilFlag is a time, or a duration from now.
type untilFlag struct {
	Until string `arg:"" help:"For how long from now, as 30m, 4h or 2d; or until when, as 2026-11-16T09:00:00Z."`
}

func (u untilFlag) at(now time.Time) (*time.Time, error) {
	if at, err := time.Parse(time.RFC3339, u.Until); err == nil {
		return &at, nil
	}
	var d desk.Duration
	if err := d.UnmarshalText([]byte(u.Until)); err != nil || d <= 0 {
		return nil, usage("%q is neither a time, as 2026-11-16T09:00:00Z, nor a duration, as 30m, 4h or 2d", u.Until)
	}
	at := now.Add(time.Duration(d)).UTC().Truncate(time.Second)
	return &at, nil
}

type snoozeCommand struct {
	actionFlags
	untilFlag
}

// Run snoozes.
func (c *snoozeCommand) Run(ctx context.Context, p *program) error {
	at, err := c.at(time.Now())
	if err != nil {
		return err
	}
	return c.apply(ctx, p, client.ActionSnooze, api.RequestAction{Until: at})
}

type extendCommand struct {
	actionFlags
	untilFlag
}

// Run moves the deadline.
func (c *extendCommand) Run(ctx context.Context, p *program) error {
	at, err := c.at(time.Now())
	if err != nil {
		return err
	}
	return c.apply(ctx, p, client.ActionExtend, api.RequestAction{Until: at})
}

type escalateCommand struct {
	actionFlags
	Reason string `help:"Why."`
}

// Run escalates.
func (c *escalateCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionEscalate, api.RequestAction{Text: c.Reason})
}

type abandonCommand struct {
	actionFlags
	Reason string `help:"Why."`
}

// Run gives the task up.
func (c *abandonCommand) Run(ctx context.Context, p *program) error {
	return c.apply(ctx, p, client.ActionAbandon, api.RequestAction{Text: c.Reason})
}

// looked tells the server that a person sees a request, so that nobody is reminded of what they know and no word counts as said without looking. It is
// about people: programs have --json. What comes of it is no concern of who looks.
func (p *program) markViewed(ctx context.Context, to *client.Client, r api.Request) {
	if p.json || r.Activity == nil || r.Activity.State != string(desk.StateOpen) || r.Activity.IneligibleReason != "" {
		return
	}
	_, _ = to.Act(ctx, r.ID, client.ActionView, api.RequestAction{Shown: r.Shown}) // whoever may only read is not counted
}

// printActivity shows what people did with a request so far, and what they still can do. Nothing is shown of a request without a life.
func printActivity(w io.Writer, life *api.Activity) {
	if life == nil {
		return
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintln(w)
	line("stands", "%s", life.Summary)
	if len(life.Requirements) > 0 && life.State == string(desk.StateOpen) {
		line("needs", "%s", requirementText(life))
	}
	if life.IneligibleReason != "" {
		line("you", "your word would not count: %s", strings.ReplaceAll(life.IneligibleReason, "_", " "))
	}
	if life.Reason != "" || len(life.Rules) > 0 {
		line("asked by", "%s%s", cmp.Or(strings.Join(life.Rules, ", "), "the graph"), reasonSuffix(life.Reason))
	}
	if life.Risk > 0 {
		line("risk", "%d", life.Risk)
	}
	if len(life.Verbs) > 0 && life.State == string(desk.StateOpen) {
		who := "you can"
		if life.IneligibleReason != "" {
			who = "others can"
		}
		line(who, "%s", strings.ReplaceAll(strings.Join(life.Verbs, ", "), string(desk.VerbRespond), "answer")) // as the command is called
	}
	if e := life.Edit; e != nil {
		line("edited", "by %s at %s: %s", e.By, formatClock(e.At), strings.Join(e.Fields, ", "))
		fmt.Fprintf(w, "\n%s\n\n", escapeControls(indented(e.Args)))
	}
	for _, v := range life.Votes {
		line("vote", "%s by %s at %s%s", v.Verb, v.By, formatClock(v.At), reasonSuffix(v.Reason))
	}
	for _, c := range life.Comments {
		line("comment", "%s at %s: %s", c.By, formatClock(c.At), c.Text)
	}
	for i, q := range life.Clarifications {
		line(fmt.Sprintf("question %d", i+1), "%s at %s: %s", q.By, formatClock(q.At), q.Text)
		if a := q.Reply; a != nil {
			line("answer", "%s at %s: %s", a.By, formatClock(a.At), a.Text)
		}
	}
	for _, h := range life.History {
		line("history", "%s %s %s", formatClock(h.At), h.By, h.Text)
	}
}

// oneLine is a text that somebody else wrote in the line of a table: it cannot look like the next one.
func oneLine(text string) string {
	return escapeControls(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// requirementText is who has to agree, and how surely it has to be them.
func requirementText(life *api.Activity) string {
	groups := make([]string, 0, len(life.Requirements))
	for _, n := range life.Requirements {
		groups = append(groups, fmt.Sprintf("%d of %s", n.Count, strings.Join(n.Groups, " or ")))
	}
	text := strings.Join(groups, ", and ")
	if life.MinAuth != "" {
		text += ", signed in with at least " + life.MinAuth
	}
	return text
}

func formatClock(t time.Time) string { return t.Local().Format(time.DateTime + " MST") }

func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
