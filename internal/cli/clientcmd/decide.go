package clientcmd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/tui"
)

type inboxList struct {
	cli.Remote
	All   bool   `help:"Include decided and withdrawn requests."`
	Kind  string `help:"Only this kind." placeholder:"KIND"`
	Limit int    `help:"Maximum number of requests." default:"50"`
}

// Run lists requests.
func (c *inboxList) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return cli.ErrLimit
	}
	query := client.Query{Kind: c.Kind, Limit: c.Limit}
	if c.All {
		query.State = "all"
	}
	page, err := tui.FetchUpTo(ctx, to.Requests, query)
	if err != nil {
		return err
	}
	return p.PrintPage(page.Items, page.Next, func(w io.Writer) {
		if len(page.Items) == 0 {
			fmt.Fprintln(w, "no open requests")
			return
		}
		fmt.Fprintln(w, "REQUEST\tRUN\tKIND\tSTATE\tRISK\tSINCE\tASKS")
		if !c.All {
			slices.SortStableFunc(page.Items, tui.CompareRisk)
		}
		for _, r := range page.Items {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, cli.Truncate(r.StateKey), cli.Truncate(r.Kind), r.State, cmp.Or(tui.RiskText(r), "-"), cli.Ago(r.CreatedAt), cli.Truncate(cli.UnescapeHTML([]byte(tui.Summary(r)))))
		}
		cli.PrintMore(w, page.Next)
		printRequestHints(w)
	})
}

// decideFlags are the flags of all decisions.
type decideFlags struct {
	cli.Remote
	ID       string `arg:"" help:"The id of the request."`
	ResumeID string `help:"An id for this decision: repeated with the same id, it is applied once." placeholder:"ID"`
	Shown    string `help:"The digest of what you saw, as printed by fermata show. If the request has changed, nothing is decided." placeholder:"DIGEST"`

	typed string `kong:"-"` // the name of the object
}

// decide decides what was shown: if the request has changed when the decision arrives, nothing is
// decided.
func (c *decideFlags) decide(ctx context.Context, p *cli.Program, answer func(api.Request) (any, error)) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	r, err := to.Request(ctx, c.ID)
	if err != nil {
		return err
	}
	reply, err := answer(r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	if c.Shown == "" {
		if c.Shown, err = r.Shown, checkViewed(ctx, to, r, data); err != nil {
			return err
		}
	}
	rendering, err := lastRendering(ctx, to, r, c.Shown)
	if err != nil {
		return err
	}
	outcome, err := to.Decide(ctx, c.ID, api.Decide{ResumeID: c.ResumeID, Answer: data, Shown: c.Shown, Confirm: c.typed, Rendering: rendering})
	if waits, ok := outcome.(fermata.NeedsInput); ok && err == nil && !p.JSON && slices.ContainsFunc(waits.Interrupts, func(i fermata.OpenInterrupt) bool { return i.ID == c.ID }) {
		return c.printVote(ctx, p, to)
	}
	if pending, ok := errors.AsType[*client.PendingError](err); ok && pending.EffectiveAt != nil {
		return p.Print(pending.Pending, func(w io.Writer) {
			fmt.Fprintf(w, "recorded\teffective at %s\nundo\tfermata undo %s\n", pending.EffectiveAt.UTC().Format(time.RFC3339), c.ID)
		})
	}
	if done, decides := verbTexts[verbOf(data)]; decides && err == nil && !p.JSON {
		if bytes.Contains(data, []byte(`"args":`)) {
			done += " with edits"
		}
		fmt.Fprintf(p.Out, "%s: %s\n", done, cli.OneLine(tui.Summary(r)))
	}
	err = printOutcome(p, outcome, err)
	if errors.Is(err, cli.ErrRefused) && verbOf(data) == "reject" { // as the person wanted it
		return nil
	}
	return err
}

// printVote prints how the votes stand after one that did not decide the request.
func (c decideFlags) printVote(ctx context.Context, p *cli.Program, to *client.Client) error {
	r, err := to.Request(ctx, c.ID)
	if err != nil {
		return err
	}
	return p.Print(r, func(w io.Writer) {
		fmt.Fprintf(w, "recorded\t%s\nrun\t%s still waits\n", cli.OneLine(tui.VoteText(r.Activity)), cli.OneLine(r.StateKey))
	})
}

// verbTexts are the past tenses of verbs.
var verbTexts = map[string]string{"approve": "approved", "reject": "rejected"}

// verbOf returns the verb of an answer; "" if it has none.
func verbOf(answer json.RawMessage) string {
	var reply struct{ Verb, Action string }
	_ = json.Unmarshal(answer, &reply)
	return cmp.Or(reply.Verb, reply.Action)
}

// lastRendering returns the hash of what fermata show printed last for this person, if it was the
// version that is decided.
func lastRendering(ctx context.Context, to *client.Client, r api.Request, shown string) (hash string, err error) {
	if r.Activity == nil || len(r.Activity.Renderings) == 0 {
		return "", nil
	}
	me, err := to.Me(ctx)
	for _, seen := range r.Activity.Renderings {
		if seen.By == me.Principal && seen.Shown == shown && seen.Template == showTemplate {
			hash = seen.Hash
		}
	}
	return hash, err
}

// checkViewed returns an error if another person has edited the request since the person viewed it,
// because they would approve something that they have not seen. A rejection is safe, and the server
// checks eligibility.
func checkViewed(ctx context.Context, to *client.Client, r api.Request, answer json.RawMessage) error {
	if r.Activity == nil || r.Activity.Edit == nil || r.Activity.IneligibleReason != "" || verbOf(answer) == "reject" {
		return nil
	}
	me, err := to.Me(ctx)
	if err != nil || me.Principal == r.Activity.Edit.By {
		return err
	}
	for _, h := range r.Activity.History {
		if h.Event == string(desk.EventViewed) && h.By == me.Principal && h.At.After(r.Activity.Edit.At) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s edited it at %s; read it with fermata show %s, or pass the digest of what you saw with --shown", cli.ErrNotViewed, cli.OneLine(r.Activity.Edit.By), cli.FormatClock(r.Activity.Edit.At), r.ID)
}

type AnswerCommand struct {
	decideFlags
	Answer cli.JSONArg `arg:"" help:"The answer as JSON; @FILE and - read it from a file and from standard input."`
}

// Run answers a request.
func (c *AnswerCommand) Run(ctx context.Context, p *cli.Program) error {
	reply, err := c.Answer.Read("the answer")
	if err != nil {
		return err
	}
	return c.decide(ctx, p, func(api.Request) (any, error) { return reply, nil })
}

type ApproveCommand struct {
	decideFlags
	Reason  string      `help:"The reason."`
	Args    cli.JSONArg `help:"Approve with these arguments instead of the requested ones, as JSON; @FILE and - read them from a file and from standard input." placeholder:"JSON"`
	Code    []string    `help:"A reason code for the edit, if the rules ask for one; may be repeated." placeholder:"WORD"`
	Confirm string      `help:"The name of the object, if the rules ask for it: fermata show prints it. A terminal asks for it." placeholder:"TEXT"`
	conditionFlags
}

// Run approves a request.
func (c *ApproveCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.decide(ctx, p, func(r api.Request) (any, error) {
		if c.typed = c.Confirm; c.typed == "" && r.Activity != nil && r.Activity.Confirm != "" && r.Activity.IneligibleReason == "" {
			c.typed = ask(p, "To approve, type "+confirmLabel(r, c.Args != "")+": ")
		}
		if c.typed == "" && isRisky(r) && isTerminal(p) && ask(p, cli.OneLine(tui.Summary(r))+"\nThe risk is "+tui.RiskText(r)+". Type yes to approve: ") != "yes" {
			return nil, cli.Usagef("not approved: yes was not typed")
		}
		reply, err := verbAnswer(r, "approve", c.Reason)
		if err == nil && c.Args != "" {
			reply["args"], err = c.Args.Read("--args")
		}
		if err == nil && len(c.Code) > 0 {
			if c.Args == "" {
				return nil, cli.Usagef("--code gives the reason of an edit: pass --args too")
			}
			reply["codes"] = c.Code
		}
		if err == nil && !c.conditionFlags.isZero() {
			if r.Kind != fermata.Approval.Name() {
				return nil, cli.Usagef("only the approval of an action can have conditions")
			}
			reply["conditions"], err = c.conditions(time.Now())
		}
		if err == nil && c.typed == "" && r.Activity != nil && r.Activity.Confirm != "" && r.Activity.IneligibleReason == "" {
			return nil, cli.Usagef("the rules ask for the name of the object: pass --confirm with the text that fermata show prints")
		}
		return reply, err
	})
}

// isRisky reports whether a person should look twice before they approve a request.
func isRisky(r api.Request) bool {
	return r.Activity != nil && r.Activity.Risk >= 2 && r.Activity.IneligibleReason == ""
}

// isTerminal reports whether a person is at the terminal.
func isTerminal(p *cli.Program) bool {
	return !p.JSON && tui.IsTerminal(p.Out) && tui.IsTerminal(os.Stdin)
}

// ask reads a line from the terminal; it returns "" without one.
func ask(p *cli.Program, prompt string) string {
	if !isTerminal(p) {
		return ""
	}
	fmt.Fprint(p.Out, prompt)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // the server refuses what is missing
	return strings.TrimSpace(line)
}

// confirmLabel says what to type to approve a request.
func confirmLabel(r api.Request, edited bool) string {
	if edited && len(r.Activity.ConfirmFields) > 0 {
		return "the new value of " + cli.OneLine(strings.Join(r.Activity.ConfirmFields, ", "))
	}
	return cli.OneLine(r.Activity.Confirm)
}

type RejectCommand struct {
	decideFlags
	Reason string   `help:"The reason, for people."`
	Code   []string `help:"A reason code for programs, for example too_expensive; may be repeated." placeholder:"WORD"`
}

// Run rejects a request.
func (c *RejectCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.decide(ctx, p, func(r api.Request) (any, error) {
		reply, err := verbAnswer(r, "reject", c.Reason)
		if err == nil && len(c.Code) > 0 {
			reply["codes"] = c.Code
		}
		return reply, err
	})
}

// verbAnswer returns an approving or rejecting answer. Questions have one if their answer schema
// has a verb or an action with that value.
func verbAnswer(r api.Request, verb, reason string) (map[string]any, error) {
	if p := r.Presentation; p != nil && (p.Shape == "gate" || p.Shape == "hold") {
		reply := map[string]any{"verb": verb}
		if reason != "" {
			reply["reason"] = reason
		}
		return reply, nil
	}
	var schema struct{ Properties map[string]json.RawMessage }
	if r.AnswerSchema != nil {
		if err := json.Unmarshal(r.AnswerSchema, &schema); err != nil {
			return nil, err
		}
	}
	reply := make(map[string]any)
	for _, name := range []string{"verb", "action"} {
		var property struct{ Enum []string }
		if json.Unmarshal(schema.Properties[name], &property) == nil && slices.Contains(property.Enum, verb) {
			reply[name] = verb
			break
		}
	}
	if len(reply) == 0 {
		return nil, cli.Usagef("%s cannot be answered with %s; see fermata show, and use fermata answer", r.Kind, verb)
	}
	if reason == "" {
		return reply, nil
	}
	for _, name := range []string{"reason", "feedback"} {
		if _, there := schema.Properties[name]; there {
			reply[name] = reason
			return reply, nil
		}
	}
	return nil, cli.Usagef("an answer to %s cannot have a reason", r.Kind)
}
