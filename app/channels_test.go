package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/slackfake"
)

// Every channel of the file is open, and its targets are those of routes.
func TestOpenChannels_AllKinds(t *testing.T) {
	writeFiles(t, map[string]string{
		"bot": "xoxb-1", "sign": "s3cret", "password": "hush", "key": strings.Repeat("k", 64), "pd": "R1", "hook": "https://example.com/hook", "ca": "",
		"fermata.yaml": `
listen: {publicURL: "https://fermata.example.com"}
channels:
  slack: {account: acme, botTokenFile: bot, signingSecretFile: sign}
  email: {host: mail.example.com, username: fermata, passwordFile: password, from: Fermata <fermata@example.com>, linkKeyFile: key}
  pagerduty: {routingKeyFiles: {db: pd}}
  alertmanager: {url: "http://10.0.0.1:9093"}
  teams: {webhookFiles: {ops: hook}}
`,
		"good.yaml": `
routes:
- name: all
  steps:
  - {at: 0s, notify: ["slack:#ops", "slack:C0EMEA", "email:ann@example.com", "teams:ops"]}
  - {at: 2h, page: ["pagerduty:db", "alertmanager:oncall"]}
  - {at: 12h, expire: stale}
`,
		"bad.yaml": `
routes:
- name: all
  steps:
  - {at: 0s, notify: ["slack:ops", "email:ann", "teams:dev"]}
  - {at: 2h, page: ["pagerduty:web", "sms:1"]}
  - {at: 12h, expire: stale}
`,
	})
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"routes check -c fermata.yaml good.yaml", cli.ExitOK, []string{"good.yaml is valid"}},
		{"routes check good.yaml", cli.ExitUsage, []string{`no channel of this server serves the target "slack:#ops"`}},
		{"routes check -c fermata.yaml bad.yaml", cli.ExitUsage, []string{
			`:5: routes[0].steps[0].notify[0]: impossible target "slack:ops": "ops" is neither a Slack id such as C0EMEA, nor a channel name such as #ops`,
			`impossible target "email:ann": "ann" is not an e-mail address`, `impossible target "teams:dev": teams:dev has no webhook`,
			`:6: routes[0].steps[1].page[0]: impossible target "pagerduty:web": pagerduty:web has no routing key`, `no channel of this server serves the target "sms:1"`,
		}},
	} {
		code, out, errOut := call(t, strings.Fields(c.args)...)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(out+errOut, want) {
				t.Errorf("fermata %s: %d, no %q in\n%s%s", c.args, code, want, out, errOut)
			}
		}
	}
}

func TestConfigCheck_ReportsChannels(t *testing.T) {
	for text, want := range map[string]string{
		"channels: {slack: {account: acme, botTokenFile: bot, signingSecretFile: gone}}":                              "fermata.yaml:1: channels.slack.signingSecretFile: gone: no such file or directory",
		"channels: {slack: {account: acme, botTokenFile: key, signingSecretFile: key}}":                               "channels.slack: the bot token is missing or does not start with xoxb-",
		"listen: {publicURL: 'https://f'}\nchannels: {email: {host: m, from: a@b.c, linkKeyFile: key, caFile: bot}}":  "channels.email: caFile: bot has no certificates in PEM",
		"listen: {publicURL: 'https://f'}\nchannels: {email: {host: m, from: a@b.c, linkKeyFile: key, caFile: none}}": "channels.email: caFile: open none: no such file",
		"channels: {webpush: {keyFile: key, subject: 'mailto:a@b.c'}}":                                                "channels.webpush: the key is not a P-256 private key",
		"desk: {routesFile: routes.yaml}": `routes.yaml:3: routes[0].steps[0].notify[0]: no channel of this server serves the target "email:ann"`,
		"desk: {routesFile: routes.yaml}\nlisten: {publicURL: 'https://f'}\nchannels: {email: {host: m, from: a@b.c, linkKeyFile: key}}": `impossible target "email:ann": "ann" is not an e-mail address`,
		"desk: {routesFile: routes.yaml}\nchannels: {slack: {account: acme, botTokenFile: bot, appTokenFile: key}}":                      "channels.slack: the app token does not start with xapp-",
	} {
		writeFiles(t, map[string]string{
			"bot": "xoxb-1", "key": strings.Repeat("k", 64), "fermata.yaml": text + "\n",
			"routes.yaml": "routes:\n- name: r\n  steps: [{at: 0s, notify: [\"email:ann\"]}, {at: 1h, expire: stale}]\n",
		})
		if code, out, errOut := call(t, "config", "check", "fermata.yaml"); code != cli.ExitUsage || !strings.Contains(errOut, want) || out != "" {
			t.Errorf("%s: %d %s%s\nwant %s", text, code, out, errOut, want)
		}
	}
}

// A program and its configuration cannot both have a channel of one kind.
func TestOpenChannels_SecondOfAKindIsRejected(t *testing.T) {
	writeFiles(t, map[string]string{"bot": "xoxb-1"})
	c := settingsOf(t, "FERMATA_CHANNELS_SLACK_ACCOUNT=acme", "FERMATA_CHANNELS_SLACK_BOT_TOKEN_FILE=bot", "FERMATA_CHANNELS_SLACK_SIGNING_SECRET_FILE=bot")
	p := &serve.Program{Program: new(cli.Program)}
	first, err := p.OpenChannels(c, nil)
	if err != nil || len(first) != 1 || first[0].Kind() != "slack" {
		t.Fatalf("%v, %v", first, err)
	}
	p.Channels = []channel.Channel{first[0]}
	if _, err := p.OpenChannels(c, nil); err == nil || !strings.Contains(err.Error(), "channels.slack: the program already has a channel") {
		t.Errorf("%v", err)
	}
}

// slackServer is a server with a Slack channel, on a fake workspace.
type slackServer struct {
	*serve.Server
	fake       *slackfake.Slack
	ops, alice string
}

// startSlack starts a server that is connected to a fake workspace: by Socket Mode, or by HTTP.
func startSlack(t *testing.T, socket bool, environ ...string) *slackServer {
	t.Helper()
	fake, err := slackfake.Start(slackfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	s := &slackServer{fake: fake, ops: fake.AddChannel(slackfake.Channel{Name: "ops", Private: true}), alice: fake.AddUser("alice")}
	fake.Join(s.ops, fake.BotUser(), s.alice)
	writeFiles(t, map[string]string{
		"bot": fake.BotToken(), "sign": fake.SigningSecret(), "app": fake.AppToken(),
		"routes.yaml": "routes:\n- name: default\n  steps: [{at: 0s, notify: [\"slack:#ops\"]}, {at: 12h, expire: stale}]\n",
	})
	environ = append(environ, "FERMATA_CHANNELS_SLACK_ACCOUNT=acme", "FERMATA_CHANNELS_SLACK_BOT_TOKEN_FILE=bot", "FERMATA_CHANNELS_SLACK_API_URL="+fake.APIURL(),
		"FERMATA_DESK_ROUTES_FILE=routes.yaml", "FERMATA_LISTEN_PUBLIC_URL=https://fermata.example.com")
	if socket {
		environ = append(environ, "FERMATA_CHANNELS_SLACK_APP_TOKEN_FILE=app")
	} else {
		environ = append(environ, "FERMATA_CHANNELS_SLACK_SIGNING_SECRET_FILE=sign")
	}
	s.Server, _ = startOf(t, settingsOf(t, environ...))
	if !socket {
		fake.SetApp(s.URL+"/channels/slack/interactivity", s.URL+"/channels/slack/commands")
	}
	return s
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// ask creates a request to approve a refund.
func (s *slackServer) ask(t *testing.T, key string) {
	t.Helper()
	input := json.RawMessage(`{"kind":"approval","data":{"action":"refund","args":{"amount":120}}}`)
	if _, err := s.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "external:request", Input: input}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request is posted", func() bool { return len(s.fake.Messages(s.ops)) > 0 })
}

// A server posts to the workspace of its configuration, gets clicks, and stops within its grace
// period.
func TestServe_SlackOfTheConfiguration(t *testing.T) {
	for name, socket := range map[string]bool{"Socket Mode": true, "HTTP": false} {
		t.Run(name, func(t *testing.T) {
			s := startSlack(t, socket)
			s.ask(t, "refund-1")
			posted := s.fake.Messages(s.ops)[0]
			if !strings.Contains(string(posted.Blocks), "https://fermata.example.com/requests/") {
				t.Errorf("no link in %s", posted.Blocks)
			}
			eventually(t, "the click arrives", func() bool {
				d, err := s.fake.Click(t.Context(), s.alice, s.ops, posted.TS, "approve")
				return err == nil && d.Status == http.StatusOK
			})
			eventually(t, "the unlinked account gets a link", func() bool {
				return slices.ContainsFunc(s.fake.Ephemerals(s.ops, s.alice), func(m slackfake.Message) bool {
					return strings.Contains(string(m.Blocks)+m.Text, "https://fermata.example.com/link/")
				})
			})
		})
	}
}

// Requests without the signature of Slack are rejected before they reach the API.
func TestServe_UnsignedSlackRequestIsRejected(t *testing.T) {
	s := startSlack(t, false)
	answer, err := http.Post(s.URL+"/channels/slack/interactivity", "application/x-www-form-urlencoded", strings.NewReader("payload=%7B%7D"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", answer.StatusCode)
	}
	if answer, err = http.Get(s.URL + "/channels/email/x"); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("a channel that is off: status %d", answer.StatusCode)
	}
}
