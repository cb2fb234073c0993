package operatorcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
)

type WebhooksCommands struct {
	Add    webhooksAdd    `cmd:"" help:"Subscribe a URL to events. The secret is shown once."`
	List   webhooksList   `cmd:"" default:"1" help:"List subscriptions."`
	Remove webhooksRemove `cmd:"" help:"Delete a subscription."`
	Rotate webhooksRotate `cmd:"" help:"Create a new secret. The old one signs too for 24 hours."`
	Test   webhooksTest   `cmd:"" help:"Send a test event."`
}

type webhooksAdd struct {
	cli.Remote
	URL         string   `arg:"" help:"Where events are sent."`
	Type        []string `help:"Only events of this type, such as request.decided, or of a group, such as request.*." placeholder:"TYPE"`
	Kind        []string `help:"Only events of requests of this kind." placeholder:"KIND"`
	Graph       []string `help:"Only events of runs of this graph." placeholder:"GRAPH"`
	Environment []string `help:"Only events of this environment." placeholder:"NAME"`
}

// Run adds a subscription.
func (c *webhooksAdd) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	made, err := to.CreateWebhook(ctx, api.SaveWebhook{URL: c.URL, Types: c.Type, Kinds: c.Kind, Graphs: c.Graph, Environments: c.Environment})
	if err != nil {
		return err
	}
	return p.Print(made, func(w io.Writer) { printWebhookSecret(w, made) })
}

func printWebhookSecret(w io.Writer, made api.WebhookSecret) {
	fmt.Fprintf(w, "%s\nsecret %s\nThe secret is not shown again.\n", made.Webhook.ID, made.Secret)
}

type webhooksList struct{ cli.Remote }

// Run lists subscriptions.
func (c *webhooksList) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	list, err := to.Webhooks(ctx)
	if err != nil {
		return err
	}
	if list == nil {
		list = []api.Webhook{}
	}
	return p.Print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no webhooks")
		}
		for _, one := range list {
			fmt.Fprintf(w, "%s  %s  %s\n  %s\n", one.ID, cli.OneLine(one.URL), webhookFilter(one), webhookState(one))
		}
	})
}

// webhookFilter describes which events a subscription gets.
func webhookFilter(w api.Webhook) string {
	var parts []string
	for _, part := range []struct {
		label string
		list  []string
	}{{"", w.Types}, {"kind ", w.Kinds}, {"graph ", w.Graphs}, {"environment ", w.Environments}} {
		if len(part.list) > 0 {
			parts = append(parts, part.label+cli.OneLine(strings.Join(part.list, ", ")))
		}
	}
	if len(parts) == 0 {
		return "all events"
	}
	return strings.Join(parts, "; ")
}

// webhookState describes whether a subscription works.
func webhookState(w api.Webhook) string {
	switch {
	case w.Disabled != "":
		return "disabled: " + w.Disabled
	case w.Failures > 0:
		text := fmt.Sprintf("failing: %d attempts, the last one with %s", w.Failures, w.Code)
		if w.NextAt != nil {
			text += ", next attempt " + w.NextAt.Format(time.RFC3339)
		}
		return text
	case w.SentAt != nil:
		return "last event sent " + w.SentAt.Format(time.RFC3339)
	}
	return "no event sent yet"
}

type webhookID struct {
	cli.Remote
	ID string `arg:"" help:"The id of the subscription."`
}

type webhooksRemove struct{ webhookID }

// Run deletes a subscription.
func (c *webhooksRemove) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	if err := to.RemoveWebhook(ctx, c.ID); err != nil {
		return err
	}
	return p.Print(map[string]string{"removed": c.ID}, func(w io.Writer) { fmt.Fprintln(w, "the webhook is removed") })
}

type webhooksRotate struct{ webhookID }

// Run creates a new secret.
func (c *webhooksRotate) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	made, err := to.RotateWebhook(ctx, c.ID)
	if err != nil {
		return err
	}
	return p.Print(made, func(w io.Writer) { printWebhookSecret(w, made) })
}

type webhooksTest struct{ webhookID }

// Run sends a test event.
func (c *webhooksTest) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	result, err := to.TestWebhook(ctx, c.ID)
	if err != nil {
		return err
	}
	if err := p.Print(result, func(w io.Writer) {
		if result.Accepted {
			fmt.Fprintln(w, "the receiver accepted the test event")
		}
	}); err != nil || result.Accepted {
		return err
	}
	return errors.New("the receiver did not accept the test event: " + result.Code)
}
