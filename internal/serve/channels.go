package serve

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/email"
	"github.com/fermata-go/fermata/channel/pager"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/channel/teams"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/desk"
)

// OpenChannels returns the channels of the configuration after those of the program. It connects to
// none. If one cannot be used, the server does not start.
func (p *Program) OpenChannels(c *config.Config, log *slog.Logger) ([]channel.Channel, error) {
	all := slices.Clone(p.Channels)
	var errs []error
	add := func(key string, ch channel.Channel, err error) {
		if err == nil && slices.ContainsFunc(all, func(other channel.Channel) bool { return other.Kind() == ch.Kind() }) {
			err = errors.New("the program already has a channel of this kind")
		}
		if err != nil {
			text := err.Error()
			for _, pkg := range []string{"slack: ", "email: ", "pager: ", "teams: ", "webpush: "} {
				text = strings.TrimPrefix(text, pkg)
			}
			errs = append(errs, fmt.Errorf("channels.%s: %s", key, text))
			return
		}
		all = append(all, ch)
	}
	if s := c.Channels.Slack; s.Account != "" {
		ch, err := newSlack(s, log)
		add("slack", ch, err)
	}
	if e := c.Channels.Email; e.Host != "" {
		ch, err := newEmail(e, c.Listen.PublicURL)
		add("email", ch, err)
	}
	if d := c.Channels.PagerDuty; len(d.RoutingKeys) > 0 {
		ch, err := pager.NewPagerDuty(pager.PagerDutyConfig{RoutingKeys: revealed(d.RoutingKeys), URL: d.URL, Allow: hosts(d.URL)})
		add("pagerduty", ch, err)
	}
	if a := c.Channels.Alertmanager; a.URL != "" {
		ch, err := pager.NewAlertmanager(pager.AlertmanagerConfig{URL: a.URL, Token: a.Token.Reveal(), Labels: a.Labels, Allow: hosts(a.URL)})
		add("alertmanager", ch, err)
	}
	if t := c.Channels.Teams; len(t.Webhooks) > 0 {
		webhooks := revealed(t.Webhooks)
		var urls []string
		for _, to := range webhooks {
			urls = append(urls, to)
		}
		ch, err := teams.New(teams.Config{Webhooks: webhooks, Allow: hosts(urls...)})
		add("teams", ch, err)
	}
	if w := c.Channels.WebPush; w.KeyFile != "" {
		ch, err := newWebPush(w)
		add("webpush", ch, err)
	}
	return all, errors.Join(errs...)
}

func newWebPush(c config.WebPush) (*webpush.Channel, error) {
	key, err := webpush.ParseKey(c.PrivateKey.Reveal())
	if err != nil {
		return nil, err
	}
	return webpush.New(webpush.Config{Key: key, Subject: c.Subject, Allow: c.Allow})
}

// WebPushOf returns the channel that notifies browsers; nil if there is none.
func WebPushOf(channels []channel.Channel) *webpush.Channel {
	for _, ch := range channels {
		if found, ok := ch.(*webpush.Channel); ok {
			return found
		}
	}
	return nil
}

// hosts returns the hosts of URLs that the operator configured: they may be called although they
// are not public.
func hosts(urls ...string) (names []string) {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			names = append(names, u.Hostname())
		}
	}
	return names
}

func revealed(secrets map[string]config.Secret) map[string]string {
	all := make(map[string]string, len(secrets))
	for name, secret := range secrets {
		all[name] = secret.Reveal()
	}
	return all
}

// OpenSlack returns the configured Slack channel, for commands.
func OpenSlack(c config.Slack, log *slog.Logger) (*slack.Channel, error) {
	ch, err := newSlack(c, log)
	if err != nil {
		return nil, cli.Usagef("channels.slack: %w", err)
	}
	return ch, nil
}

func newSlack(c config.Slack, log *slog.Logger) (*slack.Channel, error) {
	return slack.New(slack.Config{
		Account: c.Account, BotToken: c.BotToken.Reveal(), SigningSecret: c.SigningSecret.Reveal(), AppToken: c.AppToken.Reveal(), APIURL: c.APIURL, Log: log,
	})
}

func newEmail(c config.Email, publicURL string) (*email.Channel, error) {
	var roots *x509.CertPool
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("email: caFile: %w", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("email: caFile: %s has no certificates in PEM", c.CAFile)
		}
	}
	return email.New(email.Config{
		Host: c.Host, Port: c.Port, Security: email.Security(c.Security), Username: c.Username, Password: c.Password.Reveal(),
		From: c.From, BaseURL: publicURL, Key: []byte(c.LinkKey.Reveal()), LinkLifetime: c.LinkLifetime, Roots: roots,
	})
}

// ServedBy returns the targets that channels serve.
func ServedBy(channels []channel.Channel) (served desk.Channels) {
	checkers := make(map[string]channel.AddressChecker)
	for _, ch := range channels {
		if ch.Kind() == channel.AnyKind {
			served.All = true
			continue
		}
		served.Kinds = append(served.Kinds, ch.Kind())
		_, personal := ch.(channel.Personal)
		served.People = served.People || personal
		if checker, ok := ch.(channel.AddressChecker); ok {
			checkers[ch.Kind()] = checker
		}
	}
	served.Check = func(target string) error {
		kind, to, _ := strings.Cut(target, ":")
		if checker, ok := checkers[kind]; ok {
			return checker.CheckAddress(to)
		}
		return nil
	}
	return served
}
