package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// secretFiles writes files into a new working directory.
func secretFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const allChannels = `
listen: {publicURL: "https://fermata.example.com"}
channels:
  slack: {account: acme, botTokenFile: bot, signingSecretFile: sign, appTokenFile: app}
  email:
    host: mail.example.com
    security: tls
    username: fermata
    passwordFile: password
    from: Fermata <fermata@example.com>
    linkKeyFile: linkkey
    linkLifetime: 2h
  pagerduty: {routingKeyFiles: {db: pd-db, web: pd-web}}
  alertmanager: {url: "http://alertmanager:9093", tokenFile: token, labels: {team: payments}}
  teams: {webhookFiles: {ops: teams-ops}}
  webpush: {keyFile: push, allow: [push.internal]}
`

func TestChannels_SecretsAreReadFromFiles(t *testing.T) {
	key := strings.Repeat("k", 64)
	secretFiles(t, map[string]string{
		"bot": "xoxb-1\n", "sign": "s3cret\n", "app": "xapp-1\n", "password": "hush", "linkkey": key, "pd-db": "R1", "pd-web": "R2", "token": "t0", "teams-ops": "https://example.com/hush\n", "push": "p0",
	})
	c, err := load(t, allChannels)
	if err != nil {
		t.Fatal(err)
	}
	all := c.Channels
	if s := all.Slack; s.BotToken.Reveal() != "xoxb-1" || s.SigningSecret.Reveal() != "s3cret" || s.AppToken.Reveal() != "xapp-1" {
		t.Errorf("slack %#v", s)
	}
	if e := all.Email; e.Password.Reveal() != "hush" || e.LinkKey.Reveal() != key || e.LinkLifetime != 2*time.Hour || e.Security != "tls" {
		t.Errorf("email %#v", e)
	}
	if all.PagerDuty.RoutingKeys["db"].Reveal() != "R1" || all.PagerDuty.RoutingKeys["web"].Reveal() != "R2" || all.Alertmanager.Token.Reveal() != "t0" || all.Alertmanager.Labels["team"] != "payments" || all.Teams.Webhooks["ops"].Reveal() != "https://example.com/hush" {
		t.Errorf("%#v", all)
	}
	if w := all.WebPush; w.PrivateKey.Reveal() != "p0" || w.Subject != "https://fermata.example.com" || !slices.Equal(w.Allow, []string{"push.internal"}) {
		t.Errorf("webpush %#v", w)
	}
	if shown := c.Channels.Teams.Webhooks["ops"].String() + c.Channels.PagerDuty.RoutingKeys["db"].String(); strings.Contains(shown, "hush") || strings.Contains(shown, "R1") {
		t.Errorf("I7: secrets are shown: %s", shown)
	}
}

func TestChannels_Mistakes(t *testing.T) {
	secretFiles(t, map[string]string{"short": "abc", "nourl": "hush", "key": strings.Repeat("k", 32)})
	for text, want := range map[string]string{
		"channels: {slak: {}}":                                    `fermata.yaml:1: channels.slak: unknown key; did you mean "channels.slack"?`,
		"channels:\n  slack:\n    botToken: xoxb-hush":            `fermata.yaml:3: channels.slack.botToken: unknown key; did you mean "channels.slack.botTokenFile"?`,
		"channels:\n  slack:\n    botTokenFile: gone":             "fermata.yaml:3: channels.slack.botTokenFile: gone: no such file or directory",
		"channels: {slack: {approvers: [U1]}}":                    "fermata.yaml:1: channels.slack.approvers: account is missing: the channel is off without it",
		"channels: {slack: {account: acme}}":                      "fermata.yaml:1: channels.slack.account: botTokenFile is missing",
		"channels: {slack: {account: acme, botTokenFile: short}}": "fermata.yaml:1: channels.slack.account: signingSecretFile is missing: requests of Slack must be verified; for Socket Mode set appTokenFile",
		"channels: {email: {from: ann@example.com}}":              "fermata.yaml:1: channels.email.from: host is missing: the channel is off without it",
		"channels: {email: {host: m}}":                            "fermata.yaml:1: channels.email.host: listen.publicURL is missing: messages contain links",
		"channels: {email: {host: m, from: ann}}":                 `fermata.yaml:1: channels.email.from: "ann" is not an e-mail address`,
		"channels: {email: {host: m, linkKeyFile: short}}":        "fermata.yaml:1: channels.email.linkKeyFile: the key has 3 characters; at least 32 are required",
		"channels: {email: {host: m, username: a}}":               "fermata.yaml:1: channels.email.username: set both username and passwordFile, or none",
		"channels: {email: {security: none}}":                     `fermata.yaml:1: channels.email.security: "none" is not one of starttls, tls`,
		"channels: {email: {port: 70000}}":                        "fermata.yaml:1: channels.email.port: 70000 is more than 65535",
		"channels: {pagerduty: {routingKeyFiles: {db: gone}}}":    "fermata.yaml:1: channels.pagerduty.routingKeyFiles: db: gone: no such file or directory",
		"channels: {pagerduty: {routingKeyFiles: db}}":            "fermata.yaml:1: channels.pagerduty.routingKeyFiles: expected values by name, for example {name: value}",
		"channels: {pagerduty: {routingKeyFiles: {db: ''}}}":      `fermata.yaml:1: channels.pagerduty.routingKeyFiles.db: the name or the value is empty`,
		"channels: {pagerduty: {url: x}}":                         `fermata.yaml:1: channels.pagerduty.url: "x" is not an http or https URL`,
		"channels: {alertmanager: {url: alertmanager}}":           `fermata.yaml:1: channels.alertmanager.url: "alertmanager" is not an http or https URL`,
		"channels: {alertmanager: {labels: {team: a}}}":           "fermata.yaml:1: channels.alertmanager.labels: url is missing: the channel is off without it",
		"channels: {teams: {webhookFiles: {ops: nourl}}}":         "fermata.yaml:1: channels.teams.webhookFiles: ops: the file does not contain an https URL",
		"channels: {webpush: {subject: 'mailto:a@example.com'}}":  "fermata.yaml:1: channels.webpush.subject: keyFile is missing: the channel is off without it",
		"channels: {webpush: {keyFile: gone}}":                    "fermata.yaml:1: channels.webpush.keyFile: gone: no such file or directory",
		"channels: {webpush: {keyFile: key}}":                     "fermata.yaml:1: channels.webpush.keyFile: subject is missing: push services require a mailto: or https: URL",
		"channels: {webpush: {keyFile: key, subject: ops}}":       `fermata.yaml:1: channels.webpush.subject: "ops" is not a mailto: or https: URL`,
		"listen: {publicURL: 'http://f.example.com'}\nchannels: {webpush: {keyFile: key, subject: 'mailto:a@example.com'}}": `fermata.yaml:1: listen.publicURL: "http://f.example.com" is not https: browsers turn on notifications for https only`,
		"listen: {publicURL: fermata.example.com}": `fermata.yaml:1: listen.publicURL: "fermata.example.com" is not an http or https URL`,
	} {
		_, err := load(t, text+"\n")
		if err == nil {
			t.Errorf("%s is valid", text)
			continue
		}
		if lines := mistakesOf(t, err); !slices.Contains(lines, want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s:\n%s\nwant %s", text, strings.Join(lines, "\n"), want)
		}
	}
}
