package clientcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/refusal"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

// actionFlags are the flags of all actions.
type actionFlags struct {
	cli.Remote
	ID string `arg:"" help:"The id of the request."`
}

// apply applies an action to the request, and prints its new state.
func (c actionFlags) apply(ctx context.Context, p *cli.Program, act string, body api.RequestAction) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	r, err := to.Act(ctx, c.ID, act, body)
	if err != nil {
		return err
	}
	return p.Print(r, func(w io.Writer) {
		standing := r.State
		if r.Activity != nil {
			standing = r.Activity.Summary
			if r.Activity.State == string(desk.StateWithdrawn) {
				standing = r.Activity.State
			}
		}
		fmt.Fprintf(w, "%s\t%s\n", r.ID, cli.OneLine(standing))
	})
}

type ClaimCommand struct{ actionFlags }

// Run claims the request.
func (c *ClaimCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionClaim, api.RequestAction{})
}

type ReleaseCommand struct{ actionFlags }

// Run releases the claim.
func (c *ReleaseCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionRelease, api.RequestAction{})
}

type UndoCommand struct{ actionFlags }

// Run withdraws the vote.
func (c *UndoCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionUndo, api.RequestAction{})
}

type CommentCommand struct {
	actionFlags
	Text string `arg:"" help:"The comment."`
}

// Run adds a comment.
func (c *CommentCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionComment, api.RequestAction{Text: c.Text})
}

type ClarifyCommand struct {
	actionFlags
	Question string `arg:"" help:"The question to the agent."`
}

// Run asks the agent.
func (c *ClarifyCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionClarify, api.RequestAction{Text: c.Question})
}

type ReplyCommand struct {
	actionFlags
	Answer string `arg:"" help:"The reply."`
	To     int    `name:"question" help:"The number of the question; defaults to the first one without a reply." placeholder:"N"`
}

// Run replies to a question.
func (c *ReplyCommand) Run(ctx context.Context, p *cli.Program) error {
	if c.To < 0 {
		return cli.Usagef("--question: questions are numbered from 1")
	}
	if c.To == 0 {
		to, err := c.Client()
		if err != nil {
			return err
		}
		r, err := to.Request(ctx, c.ID)
		if err != nil {
			return err
		}
		if c.To = openClarification(r.Activity); c.To == 0 {
			return fmt.Errorf("%w: %s", cli.ErrNoClarification, c.ID)
		}
	}
	return c.apply(ctx, p, client.ActionReply, api.RequestAction{Text: c.Answer, Clarification: c.To})
}

// openClarification returns the number of the first clarification request without a reply, from 1;
// 0 if there is none.
func openClarification(activity *api.Activity) int {
	if activity == nil {
		return 0
	}
	for i, q := range activity.Clarifications {
		if q.Reply == nil {
			return i + 1
		}
	}
	return 0
}

type DelegateCommand struct {
	actionFlags
	To     string `arg:"" help:"The delegate."`
	Reason string `help:"The reason."`
}

// Run delegates the request.
func (c *DelegateCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionDelegate, api.RequestAction{To: c.To, Text: c.Reason})
}

// untilFlag is a time, or a duration from now.
type untilFlag struct {
	Until string `arg:"" help:"A duration from now, for example 30m, 4h or 2d; or a time, for example 2026-11-16T09:00:00Z."`
}

func (u untilFlag) at(now time.Time) (*time.Time, error) {
	if at, err := time.Parse(time.RFC3339, u.Until); err == nil {
		return &at, nil
	}
	var d timespan.Duration
	if err := d.UnmarshalText([]byte(u.Until)); err != nil || d <= 0 {
		return nil, cli.Usagef("%q is neither a time, such as 2026-11-16T09:00:00Z, nor a duration, such as 30m, 4h or 2d", u.Until)
	}
	at := now.Add(time.Duration(d)).UTC().Truncate(time.Second)
	return &at, nil
}

type SnoozeCommand struct {
	actionFlags
	untilFlag
}

// Run snoozes the request.
func (c *SnoozeCommand) Run(ctx context.Context, p *cli.Program) error {
	at, err := c.at(time.Now())
	if err != nil {
		return err
	}
	return c.apply(ctx, p, client.ActionSnooze, api.RequestAction{Until: at})
}

type ExtendCommand struct {
	actionFlags
	untilFlag
}

// Run extends the deadline.
func (c *ExtendCommand) Run(ctx context.Context, p *cli.Program) error {
	at, err := c.at(time.Now())
	if err != nil {
		return err
	}
	return c.apply(ctx, p, client.ActionExtend, api.RequestAction{Until: at})
}

type EscalateCommand struct {
	actionFlags
	Reason string `help:"The reason."`
}

// Run escalates the request.
func (c *EscalateCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionEscalate, api.RequestAction{Text: c.Reason})
}

type AbandonCommand struct {
	actionFlags
	Reason string `help:"The reason."`
}

// Run cancels the run.
func (c *AbandonCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.apply(ctx, p, client.ActionAbandon, api.RequestAction{Text: c.Reason})
}

// The rendering of fermata show. Count up the version if the same request is rendered differently.
const (
	showChannel  = "terminal"
	showTemplate = "show@3"
)

// markViewed tells the server that a person sees a request, and the text that was printed. That
// stops reminders, and a decision without a view is flagged in analytics. Programs with --json do
// not report views. Revealed values are not kept. Errors are ignored.
func markViewed(ctx context.Context, p *cli.Program, to *client.Client, r api.Request, text string, revealed bool) {
	if p.JSON || r.Activity == nil || r.Activity.State != string(desk.StateOpen) || r.Activity.IneligibleReason != "" {
		return
	}
	rendering := api.NewRendering(text, showChannel, showTemplate)
	if revealed {
		rendering.Text = ""
	}
	// views of read-only roles do not count
	_, _ = to.Act(ctx, r.ID, client.ActionView, api.RequestAction{Shown: r.Shown, Rendering: &rendering})
}

// printActivity prints what people did with a request, and which verbs are allowed. It prints
// nothing for a request without activity.
func printActivity(w io.Writer, activity *api.Activity) {
	if activity == nil {
		return
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, cli.OneLine(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintln(w)
	line("status", "%s", activity.Summary)
	if len(activity.Requirements) > 0 && activity.State == string(desk.StateOpen) {
		line("needs", "%s", requirementText(activity))
	}
	if activity.IneligibleReason != "" {
		line("you", "%s", refusal.Sentence(activity.IneligibleReason, ""))
	}
	if activity.Reason != "" || len(activity.Rules) > 0 {
		line("required by", "%s%s", cmp.Or(strings.Join(activity.Rules, ", "), "the graph"), reasonSuffix(activity.Reason))
	}
	if activity.Risk > 0 {
		line("risk", "%d", activity.Risk)
	}
	if len(activity.Verbs) > 0 && activity.State == string(desk.StateOpen) {
		who := "you can"
		if activity.IneligibleReason != "" {
			who = "others can"
		}
		// the command's name
		line(who, "%s", strings.ReplaceAll(strings.Join(activity.Verbs, ", "), string(requirement.VerbRespond), "answer"))
	}
	if e := activity.Edit; e != nil {
		line("edited", "by %s at %s: %s", e.By, cli.FormatClock(e.At), strings.Join(e.Fields, ", "))
		fmt.Fprintf(w, "\n%s\n\n", cli.EscapeControls(indented(e.Args)))
	}
	for _, v := range activity.Votes {
		line("vote", "%s by %s at %s%s%s", v.Verb, v.By, cli.FormatClock(v.At), reasonSuffix(v.Reason), conditionsSuffix(v.Conditions))
	}
	for _, c := range activity.Comments {
		line("comment", "%s at %s: %s", c.By, cli.FormatClock(c.At), c.Text)
	}
	for i, q := range activity.Clarifications {
		line(fmt.Sprintf("question %d", i+1), "%s at %s: %s", q.By, cli.FormatClock(q.At), q.Text)
		if a := q.Reply; a != nil {
			line("reply", "%s at %s: %s", a.By, cli.FormatClock(a.At), a.Text)
		}
	}
	for _, h := range activity.History {
		line("history", "%s %s %s", cli.FormatClock(h.At), h.By, h.Text)
	}
}

// requirementText describes who must approve and with which authentication strength.
func requirementText(activity *api.Activity) string {
	groups := make([]string, 0, len(activity.Requirements))
	for _, n := range activity.Requirements {
		groups = append(groups, fmt.Sprintf("%d of %s", n.Count, strings.Join(n.Groups, " or ")))
	}
	text := strings.Join(groups, ", and ")
	if activity.MinAuth != "" {
		text += ", authenticated with at least " + activity.MinAuth
	}
	return text
}

func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
