package config

import (
	"maps"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/yamldoc"
)

// Slack configures the app of a Slack workspace. The secrets are read from files.
type Slack struct {
	Account           string   `key:"account" help:"The account of the people in the workspace. Without it there is no Slack channel."`
	BotTokenFile      string   `key:"botTokenFile" help:"A file that contains the token of the bot, xoxb-…."`
	SigningSecretFile string   `key:"signingSecretFile" help:"A file that contains the secret that verifies requests of Slack to /channels/slack/ of this server. Without it appTokenFile is needed."`
	AppTokenFile      string   `key:"appTokenFile" help:"A file that contains the token for Socket Mode, xapp-…: the server needs no public address."`
	Approvers         []string `key:"approvers" help:"Slack ids of people (U…) and user groups (S…) who may read the channels. fermata slack doctor lists other readers. It does not give anybody the right to decide."`
	APIURL            string   `key:"apiURL" help:"The address of the Web API, for tests."`

	BotToken, SigningSecret, AppToken Secret // the contents of the files
}

// Email configures a mail server. The password and the key are read from files.
type Email struct {
	Host         string        `key:"host" help:"The name of the mail server. Without it there is no e-mail channel."`
	Port         int           `key:"port" min:"0" max:"65535" help:"The port; 0 means 587 for starttls and 465 for tls."`
	Security     string        `key:"security" enum:"starttls,tls" help:"starttls or tls. There is no connection without encryption."`
	CAFile       string        `key:"caFile" help:"A file with the certificate authorities of the mail server, as PEM; those of the system by default."`
	Username     string        `key:"username" help:"The user name at the mail server, if it requires one."`
	PasswordFile string        `key:"passwordFile" help:"A file that contains the password."`
	From         string        `key:"from" help:"The sender: Fermata <fermata@example.com>."`
	LinkKeyFile  string        `key:"linkKeyFile" help:"A file with the key that signs links in messages, at least 32 characters, the same for all replicas. Create it with: fermata key make FILE."`
	LinkLifetime time.Duration `key:"linkLifetime" min:"1m" help:"How long a link in a message decides."`

	Password, LinkKey Secret // the contents of the files
}

// PagerDuty configures the Events API of PagerDuty. The keys are read from files.
type PagerDuty struct {
	RoutingKeyFiles Names  `key:"routingKeyFiles" help:"Files that contain the integration keys, by the name in a target: {db: /run/secrets/pagerduty-db}. Without any there is no PagerDuty channel. In the environment it is written the same way, on one line."`
	URL             string `key:"url" help:"The address of the Events API; that of PagerDuty by default."`

	RoutingKeys map[string]Secret // the contents of the files
}

// Alertmanager configures Prometheus Alertmanager. The token is read from a file.
type Alertmanager struct {
	URL       string `key:"url" help:"The address of Alertmanager, without /api/v2/alerts. Without it there is no Alertmanager channel."`
	TokenFile string `key:"tokenFile" help:"A file that contains a bearer token, if Alertmanager requires one."`
	Labels    Names  `key:"labels" help:"Labels of all alerts, for Alertmanager's routes: {team: payments}."`

	Token Secret // the content of the file
}

// Teams configures workflows of Microsoft Teams. Their URLs are secrets and are read from files.
type Teams struct {
	WebhookFiles Names `key:"webhookFiles" help:"Files that contain the webhook URLs of workflows, by the name in a target: {ops: /run/secrets/teams-ops}. Without any there is no Teams channel."`

	Webhooks map[string]Secret // the contents of the files
}

// WebPush configures notifications in browsers. The key is read from a file.
type WebPush struct {
	KeyFile string   `key:"keyFile" help:"A file that contains the VAPID private key, the same for all replicas. Without it there is no Web Push channel. Create it with: fermata channels webpush-key FILE. With another key, people have to turn on notifications again."`
	Subject string   `key:"subject" help:"How push services reach the operator: mailto:ops@example.com or an https URL; listen.publicURL by default."`
	Allow   []string `key:"allow" help:"Hosts of push services that are not public: host names, addresses or prefixes. Others are called only at public addresses, with https."`

	PrivateKey Secret // the content of the file
}

// Names maps user-defined names to values.
type Names map[string]string

func (*Names) expected() string { return "expected values by name, for example {name: value}" }

// read reads values by name.
func (m *Names) read(n yamldoc.Node, _ []string) {
	*m = make(Names)
	names, values := n.Keys()
	for i, name := range names {
		value, ok := values[i].Scalar()
		if ok && (name == "" || value == "") {
			values[i].Reportf("the name or the value is empty")
		}
		(*m)[name] = value
	}
}

// readChannelFiles reads the secrets of channels.
func (c *Config) readChannelFiles(wrong *mistakes) {
	one := func(key, file string, secret *Secret) {
		if file == "" {
			return
		}
		text, err := readSecret(file)
		if err != nil {
			wrong.add(c.from[key], key, "%s: %v", file, err)
			return
		}
		*secret = Secret(text)
	}
	named := func(key string, files Names) map[string]Secret {
		all := make(map[string]Secret, len(files))
		for _, name := range slices.Sorted(maps.Keys(files)) {
			text, err := readSecret(files[name])
			if err != nil {
				wrong.add(c.from[key], key, "%s: %s: %v", name, files[name], err)
				continue
			}
			all[name] = Secret(text)
		}
		return all
	}
	s, e := &c.Channels.Slack, &c.Channels.Email
	one("channels.slack.botTokenFile", s.BotTokenFile, &s.BotToken)
	one("channels.slack.signingSecretFile", s.SigningSecretFile, &s.SigningSecret)
	one("channels.slack.appTokenFile", s.AppTokenFile, &s.AppToken)
	one("channels.email.passwordFile", e.PasswordFile, &e.Password)
	one("channels.email.linkKeyFile", e.LinkKeyFile, &e.LinkKey)
	one("channels.alertmanager.tokenFile", c.Channels.Alertmanager.TokenFile, &c.Channels.Alertmanager.Token)
	one("channels.webpush.keyFile", c.Channels.WebPush.KeyFile, &c.Channels.WebPush.PrivateKey)
	if files := c.Channels.PagerDuty.RoutingKeyFiles; len(files) > 0 {
		c.Channels.PagerDuty.RoutingKeys = named("channels.pagerduty.routingKeyFiles", files)
	}
	if files := c.Channels.Teams.WebhookFiles; len(files) > 0 {
		c.Channels.Teams.Webhooks = named("channels.teams.webhookFiles", files)
	}
}

// checkChannels checks that required values are set, and that addresses are possible.
func (c *Config) checkChannels(bad func(key, format string, args ...any)) {
	if to := c.Listen.PublicURL; to != "" && !isWebURL(to) {
		bad("listen.publicURL", "%q is not an http or https URL", to)
	}
	all := c.Channels
	c.checkChannel("slack", "account", all.Slack.Account != "", bad)
	if s := all.Slack; s.Account != "" {
		if s.BotTokenFile == "" {
			bad("channels.slack.account", "botTokenFile is missing")
		}
		if s.SigningSecretFile == "" && s.AppTokenFile == "" {
			bad("channels.slack.account", "signingSecretFile is missing: requests of Slack must be verified; for Socket Mode set appTokenFile")
		}
	}
	c.checkChannel("email", "host", all.Email.Host != "", bad)
	if e := all.Email; e.Host != "" {
		if c.Listen.PublicURL == "" {
			bad("channels.email.host", "listen.publicURL is missing: messages contain links")
		}
		if _, err := mail.ParseAddress(e.From); err != nil {
			bad("channels.email.from", "%q is not an e-mail address", e.From)
		}
		if e.LinkKeyFile == "" {
			bad("channels.email.host", "linkKeyFile is missing: links in messages are signed; create it with: fermata key make FILE")
		} else if n := len(e.LinkKey); n > 0 && n < 32 {
			bad("channels.email.linkKeyFile", "the key has %d characters; at least 32 are required", n)
		}
		if (e.Username == "") != (e.PasswordFile == "") {
			bad("channels.email.username", "set both username and passwordFile, or none")
		}
	}
	c.checkChannel("pagerduty", "routingKeyFiles", len(all.PagerDuty.RoutingKeyFiles) > 0, bad)
	if to := all.PagerDuty.URL; to != "" && !isWebURL(to) {
		bad("channels.pagerduty.url", "%q is not an http or https URL", to)
	}
	c.checkChannel("alertmanager", "url", all.Alertmanager.URL != "", bad)
	if to := all.Alertmanager.URL; to != "" && !isWebURL(to) {
		bad("channels.alertmanager.url", "%q is not an http or https URL", to)
	}
	for _, name := range slices.Sorted(maps.Keys(all.Teams.Webhooks)) {
		if !isWebURL(all.Teams.Webhooks[name].Reveal()) { // the URL is a secret
			bad("channels.teams.webhookFiles", "%s: the file does not contain an https URL", name)
		}
	}
	c.checkWebPush(bad)
}

// checkWebPush checks that browsers can subscribe, and that push services know the operator.
func (c *Config) checkWebPush(bad func(key, format string, args ...any)) {
	w := &c.Channels.WebPush
	c.checkChannel("webpush", "keyFile", w.KeyFile != "", bad)
	if w.KeyFile == "" {
		return
	}
	public, err := url.Parse(c.Listen.PublicURL)
	isHTTPS := err == nil && public.Scheme == "https"
	if c.Listen.PublicURL != "" && !isHTTPS && !isLocal(public) {
		bad("listen.publicURL", "%q is not https: browsers turn on notifications for https only", c.Listen.PublicURL)
	}
	switch {
	case w.Subject == "" && isHTTPS:
		w.Subject = c.Listen.PublicURL
	case w.Subject == "":
		bad("channels.webpush.keyFile", "subject is missing: push services require a mailto: or https: URL")
	case !strings.HasPrefix(w.Subject, "mailto:") && !strings.HasPrefix(w.Subject, "https://"):
		bad("channels.webpush.subject", "%q is not a mailto: or https: URL", w.Subject)
	}
}

// isLocal reports whether a URL names this machine, which browsers trust without https.
func isLocal(u *url.URL) bool {
	if u == nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}

// checkChannel reports keys of a channel that is off, because the key that turns it on is missing.
func (c *Config) checkChannel(kind, required string, on bool, bad func(key, format string, args ...any)) {
	if on {
		return
	}
	prefix := "channels." + kind + "."
	for _, s := range settings(c).all() {
		if key := s.path; strings.HasPrefix(key, prefix) && c.from[key] != "" && !s.isDefault() {
			bad(key, "%s is missing: the channel is off without it", required)
		}
	}
}

// isDefault reports whether a key has its default value; an empty list or mapping equals none.
func (s setting) isDefault() bool {
	for _, other := range settings(Default()).all() {
		if other.path == s.path {
			return s.text() == other.text() && (!s.list() || s.value.Len() == 0)
		}
	}
	return false
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
