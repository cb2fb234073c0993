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

// deskCommands are what people do with requests beside deciding, and what those do who say how it is decided.
type deskCommands struct {
	Claim    claimCommand    `cmd:"" group:"people" help:"Look after a request; others can still decide."`
	Release  releaseCommand  `cmd:"" group:"people" help:"Look after a request no longer."`
	Comment  commentCommand  `cmd:"" group:"people" help:"Say something to all who look at a request."`
	Ask      askCommand      `cmd:"" group:"people" help:"Ask the run something before you decide; the request stays open."`
	Reply    replyCommand    `cmd:"" group:"people" help:"Answer what was asked back, for the run."`
	Delegate delegateCommand `cmd:"" group:"people" help:"Have somebody else decide, who may."`
	Snooze   snoozeCommand   `cmd:"" group:"people" help:"Leave everybody in peace for a while; the deadline stays."`
	Extend   extendCommand   `cmd:"" group:"people" help:"Move the deadline of a request."`
	Escalate escalateCommand `cmd:"" group:"people" help:"Take the next step of the route now."`
	Escape   escapeCommand   `cmd:"" group:"people" help:"Give up the task that a request is part of: the run is ended."`
	Remember rememberCommand `cmd:"" group:"people" help:"Have a yes of yours remembered, within bounds."`
	Grants   grantsCommands  `cmd:"" group:"people" help:"What is remembered, and how to take it back."`
	Stats    statsCommand    `cmd:"" group:"people" help:"What came of requests: how long, how often, who, which rule."`

	Policy policyCommands `cmd:"" group:"rules" help:"The rules that say what is asked of whom."`
	Routes routesCommands `cmd:"" group:"rules" help:"The ways on which people are told."`
}

// actFlags are what all acts take.
type actFlags struct {
	remote
	ID string `arg:"" help:"The id of the request."`
}

// act does something with the request, and says where it stands then.
func (c actFlags) act(ctx context.Context, p *program, act string, body api.Act) error {
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
		if r.Life != nil {
			standing = r.Life.Summary
			if r.Life.State == string(desk.Withdrawn) {
				standing = r.Life.State
			}
		}
		fmt.Fprintf(w, "%s\t%s\n", r.ID, oneLine(standing))
	})
}

type claimCommand struct{ actFlags }

// Run claims.
func (c *claimCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Claim, api.Act{})
}

type releaseCommand struct{ actFlags }

// Run takes a claim back.
func (c *releaseCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Release, api.Act{})
}

type commentCommand struct {
	actFlags
	Text string `arg:"" help:"What you want to say."`
}

// Run comments.
func (c *commentCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Comment, api.Act{Text: c.Text})
}

type askCommand struct {
	actFlags
	Question string `arg:"" help:"What you want to know."`
}

// Run asks back.
func (c *askCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Question, api.Act{Text: c.Question})
}

type replyCommand struct {
	actFlags
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
		if c.To = openQuestion(r.Life); c.To == 0 {
			return fmt.Errorf("%w: %s", errAnswered, c.ID)
		}
	}
	return c.act(ctx, p, client.Reply, api.Act{Text: c.Answer, Question: c.To})
}

// openQuestion is the number of the first question without an answer, from 1; 0 if there is none.
func openQuestion(life *api.Life) int {
	if life == nil {
		return 0
	}
	for i, q := range life.Questions {
		if q.Answer == nil {
			return i + 1
		}
	}
	return 0
}

type delegateCommand struct {
	actFlags
	To     string `arg:"" help:"To whom."`
	Reason string `help:"Why."`
}

// Run delegates.
func (c *delegateCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Delegate, api.Act{To: c.To, Text: c.Reason})
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
	actFlags
	untilFlag
}

// Run snoozes.
func (c *snoozeCommand) Run(ctx context.Context, p *program) error {
	at, err := c.at(time.Now())
	if err != nil {
		return err
	}
	return c.act(ctx, p, client.Snooze, api.Act{Until: at})
}

type extendCommand struct {
	actFlags
	untilFlag
}

// Run moves the deadline.
func (c *extendCommand) Run(ctx context.Context, p *program) error {
	at, err := c.at(time.Now())
	if err != nil {
		return err
	}
	return c.act(ctx, p, client.Extend, api.Act{Until: at})
}

type escalateCommand struct {
	actFlags
	Reason string `help:"Why."`
}

// Run escalates.
func (c *escalateCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Escalate, api.Act{Text: c.Reason})
}

type escapeCommand struct {
	actFlags
	Reason string `help:"Why."`
}

// Run gives the task up.
func (c *escapeCommand) Run(ctx context.Context, p *program) error {
	return c.act(ctx, p, client.Escape, api.Act{Text: c.Reason})
}

// looked tells the server that a person sees a request, so that nobody is reminded of what they know and no word counts as said without looking. It is
// about people: programs have --json. What comes of it is no concern of who looks.
func (p *program) looked(ctx context.Context, to *client.Client, r api.Request) {
	if p.json || r.Life == nil || r.Life.State != string(desk.Open) || r.Life.MayNot != "" {
		return
	}
	_, _ = to.Act(ctx, r.ID, client.View, api.Act{Shown: r.Shown}) // whoever may only read is not counted
}

// printLife shows what people did with a request so far, and what they still can do. Nothing is shown of a request without a life.
func printLife(w io.Writer, life *api.Life) {
	if life == nil {
		return
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintln(w)
	line("stands", "%s", life.Summary)
	if len(life.Need) > 0 && life.State == string(desk.Open) {
		line("needs", "%s", needs(life))
	}
	if life.MayNot != "" {
		line("you", "your word would not count: %s", strings.ReplaceAll(life.MayNot, "_", " "))
	}
	if life.Reason != "" || len(life.Rules) > 0 {
		line("asked by", "%s%s", cmp.Or(strings.Join(life.Rules, ", "), "the graph"), because(life.Reason))
	}
	if life.Risk > 0 {
		line("risk", "%d", life.Risk)
	}
	if len(life.Verbs) > 0 && life.State == string(desk.Open) {
		who := "you can"
		if life.MayNot != "" {
			who = "others can"
		}
		line(who, "%s", strings.ReplaceAll(strings.Join(life.Verbs, ", "), string(desk.VerbRespond), "answer")) // as the command is called
	}
	if e := life.Edit; e != nil {
		line("edited", "by %s at %s: %s", e.By, clock(e.At), strings.Join(e.Fields, ", "))
		fmt.Fprintf(w, "\n%s\n\n", clean(indented(e.Args)))
	}
	for _, v := range life.Votes {
		line("vote", "%s by %s at %s%s", v.Verb, v.By, clock(v.At), because(v.Reason))
	}
	for _, c := range life.Comments {
		line("comment", "%s at %s: %s", c.By, clock(c.At), c.Text)
	}
	for i, q := range life.Questions {
		line(fmt.Sprintf("question %d", i+1), "%s at %s: %s", q.By, clock(q.At), q.Text)
		if a := q.Answer; a != nil {
			line("answer", "%s at %s: %s", a.By, clock(a.At), a.Text)
		}
	}
	for _, h := range life.History {
		line("history", "%s %s %s", clock(h.At), h.By, h.Text)
	}
}

// oneLine is a text that somebody else wrote in the line of a table: it cannot look like the next one.
func oneLine(text string) string {
	return clean(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}

// needs is who has to agree, and how surely it has to be them.
func needs(life *api.Life) string {
	groups := make([]string, 0, len(life.Need))
	for _, n := range life.Need {
		groups = append(groups, fmt.Sprintf("%d of %s", n.Count, strings.Join(n.From, " or ")))
	}
	text := strings.Join(groups, ", and ")
	if life.MinAuth != "" {
		text += ", signed in with at least " + life.MinAuth
	}
	return text
}

func clock(t time.Time) string { return t.Local().Format(time.DateTime + " MST") }

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
