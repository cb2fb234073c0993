package app

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/slackfake"
)

func TestSlackDoctor_ReportsEachCheck(t *testing.T) {
	fake, err := slackfake.Start(slackfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	private, public := fake.AddChannel(slackfake.Channel{Name: "ops", Private: true}), fake.AddChannel(slackfake.Channel{Name: "all"})
	fake.Join(private, fake.BotUser())
	fake.Join(public, fake.BotUser())
	writeFiles(t, map[string]string{
		"token": fake.BotToken(), "secret": fake.SigningSecret(),
		"fermata.yaml": "channels: {slack: {account: acme, botTokenFile: token, signingSecretFile: secret, apiURL: \"" + fake.APIURL() + "\"}}\n",
		"none.yaml":    "listen: {addr: \"127.0.0.1:0\"}\n",
		"bare.yaml":    "channels: {slack: {account: acme, botTokenFile: token}}\n",
	})
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"slack doctor -c fermata.yaml " + private, cli.ExitOK, "private, 1 members"},
		{"slack doctor -c fermata.yaml " + public, cli.ExitFindings, "the channel is public"},
		{"slack doctor -c fermata.yaml C404 --json", cli.ExitFindings, `"check":"channel C404","ok":false`},
		{"slack doctor -c fermata.yaml --url http://127.0.0.1:1", cli.ExitFindings, "not reachable"},
		{"slack doctor -c none.yaml", cli.ExitUsage, "channels.slack.account is not set"},
		{"slack doctor -c bare.yaml", cli.ExitUsage, "signingSecretFile is missing"},
	} {
		code, out, errOut := call(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("fermata %s: %d, no %q in\n%s%s", c.args, code, c.want, out, errOut)
		}
		if strings.Contains(out+errOut, fake.BotToken()) || strings.Contains(out+errOut, fake.SigningSecret()) {
			t.Errorf("fermata %s prints a secret", c.args)
		}
	}
}
