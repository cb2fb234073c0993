package slack_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/slackfake"
)

func find(t *testing.T, all []slack.Finding, check string) slack.Finding {
	t.Helper()
	for _, f := range all {
		if strings.HasPrefix(f.Check, check) {
			return f
		}
	}
	t.Fatalf("no finding about %s in %+v", check, all)
	return slack.Finding{}
}

func TestExamine_AcceptsACompleteSetup(t *testing.T) {
	o := openOffice(t, nil)
	o.SetUserGroup("S0OPS", o.alice)
	all := o.channel.Examine(t.Context(), slack.Examination{Channels: []string{o.ops}, Approvers: []string{"S0OPS"}, URL: o.endURL})
	if len(all) != 5 {
		t.Errorf("%d findings: %+v", len(all), all)
	}
	for _, f := range all {
		if !f.OK || f.Warning {
			t.Errorf("%+v", f)
		}
	}
}

func TestExamine_NamesWhatIsWrong(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{Scopes: []string{"chat:write", "channels:read", "groups:read", "users:read", "usergroups:read"}}, nil)
	public := w.AddChannel(slackfake.Channel{Name: "all"})
	shared := w.AddChannel(slackfake.Channel{Name: "shared", Private: true, Shared: true})
	w.Join(public, w.BotUser())
	w.Join(shared, w.BotUser())
	all := w.channel.Examine(t.Context(), slack.Examination{Channels: []string{public, shared, w.ops, "C404"}, Approvers: []string{"U0NONE"}, URL: "http://127.0.0.1:1"})
	for check, want := range map[string]string{
		"scopes": "groups:history", "endpoint": "not reachable", "channel " + public + " (#all)": "public", "channel " + shared: "shared with another workspace",
		"channel " + w.ops + " (#ops) readers": "alice", "channel C404": "channel_not_found",
	} {
		if f := find(t, all, check); f.OK && !f.Warning || !strings.Contains(f.Detail, want) {
			t.Errorf("%+v; want %q", f, want)
		}
	}
	w.config.BotToken = "xoxb-other"
	w.reopen(t)
	if f := find(t, w.channel.Examine(t.Context(), slack.Examination{}), "token"); f.OK || !strings.Contains(f.Detail, "invalid_auth") {
		t.Errorf("%+v", f)
	}
}

// The manifest asks for exactly the scopes that the channel needs, and names its endpoints.
func TestManifest_MatchesTheChannel(t *testing.T) {
	text, err := os.ReadFile("../../deploy/slack-manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Features struct {
			Commands []struct{ Command, URL string } `yaml:"slash_commands"`
		}
		OAuth struct {
			Scopes struct{ Bot []string }
		} `yaml:"oauth_config"`
		Settings struct {
			Interactivity struct {
				Enabled bool   `yaml:"is_enabled"`
				URL     string `yaml:"request_url"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	want, got := slack.Scopes(), manifest.OAuth.Scopes.Bot
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("scopes %v; want %v", got, want)
	}
	if s := manifest.Settings.Interactivity; !s.Enabled || !strings.HasSuffix(s.URL, "/channels/slack/interactivity") {
		t.Errorf("interactivity %+v", s)
	}
	if c := manifest.Features.Commands; len(c) != 1 || c[0].Command != "/fermata" || !strings.HasSuffix(c[0].URL, "/channels/slack/commands") {
		t.Errorf("commands %+v", c)
	}
}
