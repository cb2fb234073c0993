package demo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/slackfake"
)

// demoSlack is the fake Slack workspace of the demo. Dana's account is linked, eve's is not.
type demoSlack struct {
	*slackfake.Slack
	channel    *slack.Channel
	approvals  string
	dana, eve  string
	routesFile string
}

const demoSlackTour = "This is a strict fake of Slack: it rejects what Slack rejects. Dana's account is linked, so a click of dana decides. " +
	"Choose eve on the left and click the same button: the account is not linked, and only eve sees the answer."

// demoSlackChannel is the id of the channel. It is the same after a restart, so that the server
// finds the messages of an earlier demo missing and posts them again.
const demoSlackChannel = "C0APPROVALS"

// demoRoutes sends every request of the demo to the fake channel.
const demoRoutes = `routes:
- name: default
  steps:
  - {at: 0s, notify: ["slack:#approvals"]}
  - {at: 24h, expire: stale}
`

// startDemoSlack starts the workspace, and a channel that is connected to it by Socket Mode.
func startDemoSlack(dir string, log *slog.Logger) (*demoSlack, error) {
	fake, err := slackfake.Start(slackfake.Config{Tour: demoSlackTour})
	if err != nil {
		return nil, err
	}
	d := &demoSlack{Slack: fake, approvals: fake.AddChannel(slackfake.Channel{ID: demoSlackChannel, Name: "approvals", Private: true}), dana: fake.AddUser(Person), eve: fake.AddUser("eve"), routesFile: filepath.Join(dir, "routes-slack.yaml")}
	fake.Join(d.approvals, fake.BotUser(), d.dana, d.eve)
	d.channel, err = slack.New(slack.Config{
		Account: Account, BotToken: fake.BotToken(), AppToken: fake.AppToken(), APIURL: fake.APIURL(), DigestAbove: 50, Log: log,
	})
	if err == nil {
		err = os.WriteFile(d.routesFile, []byte(demoRoutes), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, fake.Close())
	}
	return d, nil
}

// page returns the address of the page of the channel, as dana.
func (d *demoSlack) page() string {
	return d.URL() + "/client?as=" + d.dana + "&channel=" + d.approvals
}

// prepare links the account of dana, as dana would do in the browser, and posts the open requests
// of an earlier demo.
func (d *demoSlack) prepare(ctx context.Context, e *executor.Executor) error {
	token, err := e.NewLinkToken(ctx, channel.Sender{Account: Account, Channel: slack.Kind, ID: d.Team() + "/" + d.dana, Name: Person})
	if err == nil {
		_, err = e.UseLinkToken(ctx, Account, token, desk.From{Actor: desk.PersonActor(Person, requirement.AuthSSO), Via: "demo"}, []string{"approver"})
	}
	if err != nil {
		return err
	}
	for filter := (executor.DeliveryFilter{Channel: slack.Kind, Limit: 100}); ; {
		list, next, err := e.Deliveries(ctx, Account, filter)
		if err != nil {
			return err
		}
		for _, one := range list {
			if _, err := e.SendAgain(ctx, Account, one.ID); err != nil {
				return err
			}
		}
		if filter.After = next; next == "" {
			return nil
		}
	}
}

// PublicURL returns the address of the demo for links, and the listen address with a port.
func PublicURL(addr string) (public, listen string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", "", cli.Usagef("--addr: %q is not HOST:PORT", addr)
	}
	if port == "0" { // links need the port before the server is started
		free, err := net.Listen("tcp", addr)
		if err != nil {
			return "", "", err
		}
		_, port, err = net.SplitHostPort(free.Addr().String())
		if err = errors.Join(err, free.Close()); err != nil {
			return "", "", err
		}
	}
	name := cmp.Or(host, "localhost")
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		name = "localhost"
	}
	return "http://" + net.JoinHostPort(name, port), net.JoinHostPort(host, port), nil
}
