package operatorcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
)

type ChannelsCommands struct {
	List channelsList `cmd:"" default:"1" help:"List channels with their health and last delivery."`
	Test channelsTest `cmd:"" help:"Send a test message."`

	WebpushKey channelsWebPushKey `cmd:"" help:"Create the key for notifications in browsers."`
}

type channelsList struct{ cli.Remote }

// Run lists channels.
func (c *channelsList) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	list, err := to.DeliveryHealth(ctx)
	if err != nil {
		return err
	}
	return p.Print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no channels")
		}
		for _, h := range list {
			fmt.Fprintf(w, "%s\t%s\t%d sent, %d queued, %d failed, %d given up\t%s\n", cli.OneLine(h.Channel), channelState(h), h.Sent, h.Queued, h.Failed, h.Dead, lastDelivery(h))
		}
	})
}

// channelState describes whether a channel works.
func channelState(h api.ChannelHealth) string {
	failedLast := h.LastFailedAt != nil && (h.LastSentAt == nil || h.LastFailedAt.After(*h.LastSentAt))
	switch {
	case !h.Configured:
		return "not configured"
	case failedLast:
		return "failing (" + cli.OneLine(h.Code) + ")"
	case h.LastSentAt == nil:
		return "no delivery yet"
	}
	return "ok"
}

func lastDelivery(h api.ChannelHealth) string {
	var parts []string
	if h.LastSentAt != nil {
		parts = append(parts, "last sent "+h.LastSentAt.Format(time.RFC3339))
	}
	if h.LastFailedAt != nil {
		parts = append(parts, fmt.Sprintf("last failure %s (%s)", h.LastFailedAt.Format(time.RFC3339), cli.OneLine(h.Code)))
	}
	return strings.Join(parts, ", ")
}

type channelsTest struct {
	cli.Remote
	Config  string        `short:"c" help:"The configuration file of the server; fermata config example prints one." placeholder:"FILE" env:"FERMATA_CONFIG"`
	Timeout time.Duration `help:"How long to wait for the click." default:"2m"`
	Target  string        `arg:"" help:"Where the message goes, for example slack:#ops, email:ann@example.com, pagerduty:db, teams:ops or webhook:wh_4f1c."`
}

// errTestNotSent says that a test message could not be sent.
var errTestNotSent = fmt.Errorf("%w: the test message was not sent", cli.ErrNeedsAttention)

// channelTest is the JSON output of a test.
type channelTest struct {
	Target string `json:"target"`
	Sent   string `json:"sent"`
	// Answer is what the server said about the click, if the channel has a button.
	Answer string `json:"answer,omitempty"`
}

// Run sends a test message and waits for the answer.
func (c *channelsTest) Run(ctx context.Context, p *serve.Program) error {
	kind, to, ok := strings.Cut(c.Target, ":")
	if !ok || kind == "" || to == "" {
		return cli.Usagef("the target %q has no address; it looks like slack:#ops or email:ann@example.com", c.Target)
	}
	if kind == "webhook" {
		return (&webhooksTest{webhookID{Remote: c.Remote, ID: to}}).Run(ctx, p.Program)
	}
	tester, err := c.tester(p, kind, to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	sent, err := tester.Test(ctx, to)
	if err != nil {
		return fmt.Errorf("%w: %s: %s", errTestNotSent, c.Target, cli.OneLine(err.Error()))
	}
	result := channelTest{Target: c.Target, Sent: sent.Sent}
	progress(p.Program, "sent: %s", sent.Sent)
	if sent.Answer != nil {
		progress(p.Program, "waiting up to %s for a click on the button", c.Timeout)
		if result.Answer, err = sent.Answer(ctx); errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%w: no click reached the server within %s: if the button was clicked, check that the server runs with this configuration, and run: fermata slack doctor", cli.ErrTimeout, c.Timeout)
		} else if err != nil {
			return err
		}
		progress(p.Program, "answered: %s", cli.OneLine(result.Answer))
	}
	if p.JSON {
		return p.Print(result, nil)
	}
	return nil
}

// progress prints a line of a command that takes a while; with --json only its result is printed.
func progress(p *cli.Program, format string, args ...any) {
	if !p.JSON {
		fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// tester returns the channel of a target.
func (c *channelsTest) tester(p *serve.Program, kind, to string) (channel.Tester, error) {
	settings, err := serve.StoreFlags{Config: c.Config}.Settings()
	if err != nil {
		return nil, err
	}
	all, err := p.OpenChannels(settings, serve.Logger(p.Program, settings.Log))
	if err != nil {
		return nil, cli.InvalidUsage(err)
	}
	var kinds []string
	for _, one := range all {
		if kinds = append(kinds, one.Kind()); one.Kind() != kind {
			continue
		}
		if checker, ok := one.(channel.AddressChecker); ok {
			if err := checker.CheckAddress(to); err != nil {
				return nil, cli.Usagef("%s: %w", c.Target, err)
			}
		}
		tester, ok := one.(channel.Tester)
		if !ok {
			return nil, cli.Usagef("the channel %s cannot send test messages", kind)
		}
		return tester, nil
	}
	switch {
	case slices.Contains([]string{"user", "group", "role", "oncall"}, kind):
		return nil, cli.Usagef("%s names people; test one of their addresses, such as slack:U0ANN or email:ann@example.com", c.Target)
	case len(kinds) == 0:
		return nil, cli.Usagef("the configuration has no channel; name its file with --config")
	}
	return nil, cli.Usagef("the configuration has no channel %s; it has %s", kind, strings.Join(kinds, ", "))
}
