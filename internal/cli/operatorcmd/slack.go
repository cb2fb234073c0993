package operatorcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
)

type SlackCommands struct {
	Doctor slackDoctor `cmd:"" help:"Check tokens, scopes, channels and the endpoint."`
}

type slackDoctor struct {
	Config   string   `short:"c" help:"The configuration file; fermata config example prints one." placeholder:"FILE" env:"FERMATA_CONFIG"`
	URL      string   `name:"url" help:"The public address of the server, to check the endpoint that Slack calls; listen.publicURL by default." placeholder:"URL"`
	Channels []string `arg:"" optional:"" help:"The ids of Slack channels, for example C0EMEA."`
}

// errSlackSetup says that a check of the Slack app failed. The report says which.
var errSlackSetup = fmt.Errorf("%w: the Slack app is not set up correctly", cli.ErrNeedsAttention)

// slackReport is the JSON output of a check.
type slackReport struct {
	Findings []slack.Finding `json:"findings"`
}

// Run checks the app and prints one line for each check.
func (c *slackDoctor) Run(ctx context.Context, p *cli.Program) error {
	settings, err := serve.StoreFlags{Config: c.Config}.Settings()
	if err != nil {
		return err
	}
	if settings.Channels.Slack.Account == "" {
		return cli.Usagef("channels.slack.account is not set: the configuration has no Slack channel")
	}
	channel, err := serve.OpenSlack(settings.Channels.Slack, serve.Logger(p, settings.Log))
	if err != nil {
		return err
	}
	report := slackReport{channel.Examine(ctx, slack.Examination{Channels: c.Channels, Approvers: settings.Channels.Slack.Approvers, URL: cmp.Or(c.URL, settings.Listen.PublicURL)})}
	failed := false
	err = p.Print(report, func(w io.Writer) {
		for _, f := range report.Findings {
			result := "ok"
			switch {
			case !f.OK:
				result = "failed"
			case f.Warning:
				result = "warning"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", result, cli.OneLine(f.Check), cli.OneLine(f.Detail))
		}
	})
	for _, f := range report.Findings {
		failed = failed || !f.OK
	}
	if err == nil && failed {
		return errSlackSetup
	}
	return err
}
