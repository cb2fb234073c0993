package app

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// linkAlice links the Slack account of alice to the person ann.
func (s *slackServer) linkAlice(t *testing.T) {
	t.Helper()
	sender := channel.Sender{Account: "acme", Channel: "slack", ID: s.fake.Team() + "/" + s.alice, Name: "alice"}
	token, err := s.NewLinkToken(t.Context(), sender)
	if err == nil {
		_, err = s.UseLinkToken(t.Context(), "acme", token, desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}, []string{"approver"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeConfig writes a configuration file for commands, next to the files of the server.
func (s *slackServer) writeConfig(t *testing.T) {
	t.Helper()
	text := "channels: {slack: {account: acme, botTokenFile: bot, signingSecretFile: sign, apiURL: \"" + s.fake.APIURL() + "\"}}\n"
	if err := os.WriteFile("fermata.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The real command posts the test message, a person clicks, the server of the configuration gets
// the click, and the command says who clicked.
func TestChannelsTest_WaitsForTheClickInSlack(t *testing.T) {
	for name, socket := range map[string]bool{"Socket Mode": true, "HTTP": false} {
		t.Run(name, func(t *testing.T) {
			s := startSlack(t, socket)
			s.writeConfig(t)
			if socket {
				s.linkAlice(t)
			}
			var code int
			var out, errOut string
			done := make(chan struct{})
			go func() {
				defer close(done)
				code, out, errOut = call(t, "channels", "test", "slack:#ops", "-c", "fermata.yaml")
			}()
			eventually(t, "the test message is clicked", func() bool {
				all := s.fake.Messages(s.ops)
				if len(all) == 0 {
					return false
				}
				d, err := s.fake.Click(t.Context(), s.alice, s.ops, all[0].TS, "test")
				return err == nil && d.Status == http.StatusOK
			})
			<-done
			want := "the server received the click of alice"
			linked := "is not linked to a person yet"
			if socket {
				linked = "is linked to ann"
			}
			if code != cli.ExitOK || !strings.Contains(out, "waiting up to 2m0s") || !strings.Contains(out, want) || !strings.Contains(out, linked) {
				t.Errorf("%d: %s%s", code, out, errOut)
			}
			after := s.fake.Messages(s.ops)[0]
			if !strings.Contains(string(after.Blocks), "nothing to decide") || strings.Contains(string(after.Blocks), "button") {
				t.Errorf("the message is not replaced: %s", after.Blocks)
			}
		})
	}
}

func TestChannelsTest_NoClickEndsWithTimeout(t *testing.T) {
	s := startSlack(t, false)
	s.writeConfig(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"channels test slack:#ops -c fermata.yaml --timeout 100ms", cli.ExitPending, "no click reached the server within 100ms"},
		{"channels test slack:#none -c fermata.yaml", cli.ExitFindings, "/invite it"},
		{"channels test slack:ops -c fermata.yaml", cli.ExitUsage, "neither a Slack id"},
		{"channels test user:ann -c fermata.yaml", cli.ExitUsage, "names people"},
		{"channels test teams:ops -c fermata.yaml", cli.ExitUsage, "the configuration has no channel teams; it has slack"},
		{"channels test slack -c fermata.yaml", cli.ExitUsage, "has no address"},
		{"channels test slack:#ops", cli.ExitUsage, "the configuration has no channel; name its file"},
	} {
		if code, out, errOut := call(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(out+errOut, c.want) {
			t.Errorf("fermata %s: %d, no %q in\n%s%s", c.args, code, c.want, out, errOut)
		}
	}
	s.fake.SetDown(true)
	if code, out, errOut := call(t, "channels", "test", "slack:"+s.ops, "-c", "fermata.yaml"); code != cli.ExitFindings || !strings.Contains(errOut, "Slack is not reachable") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
}

// Mail goes to a real SMTP server with TLS; pages and cards to HTTP receivers.
func TestChannelsTest_SendsThroughEachChannel(t *testing.T) {
	mail := startMail(t)
	host, port, err := net.SplitHostPort(mail.addr)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []map[string]any
	status := http.StatusAccepted
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if list, ok := body.([]any); ok { // alerts
			body = list[0]
		}
		bodies = append(bodies, body.(map[string]any))
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	writeFiles(t, map[string]string{
		"password": "hush", "wrong": "other", "key": strings.Repeat("k", 64), "pd": "R1", "hook": receiver.URL + "/hook?sig=s3cret",
		"fermata.yaml": `
listen: {publicURL: "https://fermata.example.com"}
channels:
  email: {host: ` + host + `, port: ` + port + `, caFile: "` + filepath.ToSlash(mail.certFile) + `", username: fermata, passwordFile: password, from: Fermata <fermata@example.com>, linkKeyFile: key}
  pagerduty: {routingKeyFiles: {db: pd}, url: "` + receiver.URL + `"}
  alertmanager: {url: "` + receiver.URL + `"}
  teams: {webhookFiles: {ops: hook}}
`,
	})
	test := func(target string, code int, want string) {
		t.Helper()
		if got, out, errOut := call(t, "channels", "test", target, "-c", "fermata.yaml"); got != code || !strings.Contains(out+errOut, want) || strings.Contains(out+errOut, "s3cret") {
			t.Errorf("%s: %d, no %q in\n%s%s", target, got, want, out, errOut)
		}
	}
	test("email:ann@example.com", cli.ExitOK, "the mail server accepted the message to ann@example.com")
	if all := mail.received(t); len(all) != 1 || !strings.Contains(all[0], "This message tests the channel") || strings.Contains(all[0], "/channels/email/") || strings.Contains(all[0], "Your decision") {
		t.Errorf("%q", all)
	}
	test("pagerduty:db", cli.ExitOK, "pagerduty accepted a page of severity info, and its end")
	if len(bodies) != 2 || bodies[0]["event_action"] != "trigger" || bodies[1]["event_action"] != "resolve" || bodies[0]["dedup_key"] != bodies[1]["dedup_key"] ||
		bodies[0]["payload"].(map[string]any)["severity"] != "info" || !strings.Contains(bodies[0]["payload"].(map[string]any)["summary"].(string), "Test message") {
		t.Errorf("%v", bodies)
	}
	bodies = nil
	test("alertmanager:oncall", cli.ExitOK, "and its end")
	if len(bodies) != 2 || bodies[0]["startsAt"] == nil || bodies[1]["startsAt"] != nil {
		t.Errorf("%v", bodies)
	}
	test("teams:ops", cli.ExitOK, "the workflow teams:ops accepted the card")
	status = http.StatusNotFound
	test("teams:ops", cli.ExitFindings, "http_404: there is no receiver at the configured URL")
	test("pagerduty:web", cli.ExitUsage, "has no routing key")
	t.Setenv("FERMATA_CHANNELS_EMAIL_PASSWORD_FILE", "wrong")
	test("email:ann@example.com", cli.ExitFindings, "Authentication failed")
}

// A channel is listed before its first delivery, and after one with its time.
func TestChannelsList_ShowsHealthOfConfiguredChannels(t *testing.T) {
	s := startSlack(t, true)
	t.Setenv("FERMATA_URL", s.URL)
	t.Setenv("FERMATA_TOKEN", keyOf(t, s.Server, "audit", authn.RoleAuditor))
	if code, out, errOut := call(t, "channels"); code != cli.ExitOK || !strings.Contains(out, "slack") || !strings.Contains(out, "no delivery yet") {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
	s.ask(t, "refund-1")
	eventually(t, "the delivery is listed", func() bool {
		code, out, _ := call(t, "channels", "list")
		return code == cli.ExitOK && strings.Contains(out, "ok") && strings.Contains(out, "1 sent") && strings.Contains(out, "last sent 20")
	})
	var list []api.ChannelHealth
	if code, out, _ := call(t, "channels", "list", "--json"); code != cli.ExitOK || json.Unmarshal([]byte(out), &list) != nil || !slices.ContainsFunc(list, func(h api.ChannelHealth) bool { return h.Configured && h.LastSentAt != nil }) {
		t.Errorf("%d: %s", code, out)
	}
}

// keyOf makes an API key.
func keyOf(t *testing.T, r *serve.Server, person string, role authn.Role) string {
	t.Helper()
	key, kept, err := authn.NewKey("acme", person, role, time.Time{})
	if err == nil {
		err = operatorcmd.AddKey(t.Context(), r.Store, kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}
