package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/refusal"
)

// decideWait is how long a decision waits for the run. The message is replaced in any case.
const decideWait = time.Second

// Receive processes a stored click as the person who linked the Slack account. A click that does
// not count gets an ephemeral message that says why.
func (c *Channel) Receive(ctx context.Context, d channel.Desk, stored channel.Inbound) error {
	var in click
	if err := json.Unmarshal(stored.Body, &in); err != nil {
		c.config.Log.Error("slack click is unreadable", "id", stored.ID)
		return nil
	}
	err := c.receive(ctx, d, &in, stored.ID)
	if err != nil && stored.Last { // ctx may have ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return errors.Join(err, c.tellLink(ctx, &in, notCounted+"The server could not process it for a while. Click again, or use the inbox.", d.RequestURL(in.Shown.Request), "Open in inbox"))
	}
	return err
}

func (c *Channel) receive(ctx context.Context, d channel.Desk, in *click, id string) error {
	if _, err := c.identity(ctx); err != nil {
		return err
	}
	if !c.ownWorkspace(ctx, in) {
		return c.tell(ctx, in, "Your click was not counted: your Slack account belongs to another workspace. Only people of this workspace can decide here.")
	}
	person, principal, err := d.Client(ctx, c.sender(in))
	if in.Act == actTest && (err == nil || errors.Is(err, channel.ErrNotLinked)) {
		return c.receiveTest(ctx, in, principal)
	}
	if errors.Is(err, channel.ErrNotLinked) {
		link, err := d.LinkURL(ctx, c.sender(in))
		if err != nil { // an answer without a link is better than none
			c.config.Log.Error("slack account cannot be linked", "err", err)
			return c.tell(ctx, in, "This was not counted: your Slack account is not linked to a person yet, and the server could not make a link. Click again later, or ask the operator of the server.")
		}
		return c.tellLink(ctx, in, "This was not counted: your Slack account is not linked to a person yet. Link it, and then click again.", link, "Link my account")
	}
	if err != nil {
		return err
	}
	if in.Act == actCommand {
		return c.runCommand(ctx, d, person, principal, in)
	}
	return c.act(ctx, d, person, in, id)
}

// ownWorkspace reports whether a person belongs to the workspace of the bot.
func (c *Channel) ownWorkspace(ctx context.Context, in *click) bool {
	self, err := c.identity(ctx)
	return err == nil && in.Team == self.TeamID && in.UserTeam == self.TeamID
}

// act decides, or does what else the click asks for.
func (c *Channel) act(ctx context.Context, d channel.Desk, person *client.Client, in *click, id string) error {
	link := d.RequestURL(in.Shown.Request)
	var err error
	switch {
	case in.Act == actEscalate:
		_, err = person.ActOnce(ctx, in.Shown.Request, client.ActionEscalate, api.RequestAction{}, id)
	case in.Act == actUndo:
		_, err = person.ActOnce(ctx, in.Shown.Request, client.ActionUndo, api.RequestAction{}, id)
	case in.Shown.Form && in.Answer == nil:
		return c.explainNoModal(ctx, person, in, link)
	case in.Act == actAsk:
		var question api.RequestAction
		if err := json.Unmarshal(in.Answer, &question); err != nil {
			return err
		}
		_, err = person.ActOnce(ctx, in.Shown.Request, client.ActionClarify, question, id)
	case !in.Shown.Form && in.Shown.Answer == nil: // a button of an earlier version
		return c.tellLink(ctx, in, changedText, link, "Open in inbox")
	default:
		err = c.decide(ctx, person, in, id)
	}
	if err == nil {
		return nil
	}
	problem, ok := errors.AsType[*api.Problem](err)
	if !ok || isTemporary(problem) {
		return err // the same click is processed again
	}
	return c.tellLink(ctx, in, explain(problem), link, "Open in inbox")
}

// isTemporary reports whether the same call may work later.
func isTemporary(p *api.Problem) bool {
	return p.Code != "unreadable" && (p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests)
}

// decide sends a decision on what the copy showed. Its id makes a repetition harmless.
func (c *Channel) decide(ctx context.Context, person *client.Client, in *click, id string) error {
	rendering, err := recordScreen(ctx, person, in)
	if err != nil {
		return err
	}
	answer := in.Answer
	if !in.Shown.Form {
		answer = in.Shown.Answer
	}
	_, err = person.DecideWithin(ctx, in.Shown.Request, api.Decide{ResumeID: "slack-" + id, Answer: answer, Shown: in.Shown.Digest, Rendering: rendering}, decideWait)
	if errors.Is(err, client.ErrPending) {
		return nil
	}
	return err
}

// explainNoModal says why a click did not open a modal.
func (c *Channel) explainNoModal(ctx context.Context, person *client.Client, in *click, link string) error {
	r, err := person.Request(ctx, in.Shown.Request)
	if problem, ok := errors.AsType[*api.Problem](err); ok && !isTemporary(problem) {
		return c.tell(ctx, in, explain(problem))
	}
	if err != nil {
		return err
	}
	text := "Slack did not open the form in time. Click again, or use the inbox."
	switch {
	case r.State != "pending":
		text = tooLate(r)
	case r.Activity != nil && r.Activity.IneligibleReason != "":
		text = notCounted + refusal.Sentence(r.Activity.IneligibleReason, "")
	case in.Shown.Digest != "" && in.Shown.Digest != r.Shown:
		text = changedText
	default:
		if _, err := modalFor(in, r); err != nil {
			text = notCounted + err.Error()
		}
	}
	return c.tellLink(ctx, in, text, link, "Open in inbox")
}

const changedText = "Your click was not counted: the request has changed since this message was posted. Look at it again, and then decide."

// tooLate words that a request is closed.
func tooLate(r api.Request) string {
	if r.Decision == nil {
		return "Too late: the request is " + r.State + "."
	}
	if r.Decision.Verdict == "expire" {
		return "Too late: the deadline has passed."
	}
	return fmt.Sprintf("Too late: %s by %s at %s.", r.Decision.Verdict, r.Decision.By, r.Decision.At.UTC().Format(utcLayout))
}

// notCounted begins the message about a click that did not count.
const notCounted = "This was not counted. "

// explain words why the API did not accept an action: with its sentence, and who decided first.
func explain(p *api.Problem) string {
	switch p.Code {
	case "already_decided":
		if p.Decided != nil {
			return fmt.Sprintf("Too late: already decided (%s) by %s at %s.", p.Decided.Verdict, p.Decided.By, p.Decided.At.UTC().Format(utcLayout))
		}
	case "digest_mismatch":
		return changedText
	case "not_found":
		return notCounted + "The request does not exist any more, or you may not see it."
	}
	text := notCounted + cmp.Or(p.Detail, p.Title+".")
	for _, f := range p.Fields {
		text += " " + f.Message
	}
	return text
}

// tell sends a message that only the person who clicked sees.
func (c *Channel) tell(ctx context.Context, in *click, text string) error {
	return c.tellLink(ctx, in, text, "", "")
}

// tellLink is tell with a button that opens a link.
func (c *Channel) tellLink(ctx context.Context, in *click, text, link, label string) error {
	r := rendered{text: clip(text, maxSection)}
	r.addText(text)
	if link != "" {
		r.add(slack.NewActionBlock(blockActions, linkButton(link, label)))
	}
	return c.respond(ctx, in, r)
}

// respond answers a click by its response URL, or with an ephemeral message if that has expired.
func (c *Channel) respond(ctx context.Context, in *click, r rendered) error {
	var err error
	if in.ResponseURL != "" && c.isSlackURL(in.ResponseURL) {
		err = slack.PostWebhookCustomHTTPContext(ctx, in.ResponseURL, c.http, &slack.WebhookMessage{
			Text: escape(r.text), Blocks: &slack.Blocks{BlockSet: r.blocks}, ResponseType: slack.ResponseTypeEphemeral,
		})
		if err == nil {
			return nil
		}
	}
	if in.Channel == "" {
		return err
	}
	_, err = call(ctx, c, "chat.postEphemeral", in.Channel, func() (string, error) {
		return c.api.PostEphemeralContext(ctx, in.Channel, in.User, r.options()...)
	})
	if channelerror.IsPermanent(err) || isCode(err, "user_not_in_channel") {
		c.config.Log.Warn("slack click without an answer", "err", err)
		return nil
	}
	return err
}

// isSlackURL reports whether a response URL belongs to Slack, so that a forged payload cannot make
// the server call other addresses.
func (c *Channel) isSlackURL(text string) bool {
	if base, ok := strings.CutSuffix(c.config.APIURL, "/api/"); ok && strings.HasPrefix(text, base+"/") && c.config.APIURL != slack.APIURL {
		return true
	}
	return strings.HasPrefix(text, "https://hooks.slack.com/")
}
