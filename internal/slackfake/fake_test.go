package slackfake_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/fermata-go/fermata/internal/slackfake"
)

// workspace is a fake with a private channel, a person and the bot.
type workspace struct {
	*slackfake.Slack
	api        *slack.Client
	ops, alice string
}

func start(t *testing.T, config slackfake.Config) *workspace {
	t.Helper()
	fake, err := slackfake.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	w := &workspace{Slack: fake, api: slack.New(fake.BotToken(), slack.OptionAPIURL(fake.APIURL()), slack.OptionAppLevelToken(fake.AppToken()))}
	w.ops, w.alice = fake.AddChannel(slackfake.Channel{Name: "ops", Private: true}), fake.AddUser("alice")
	fake.Join(w.ops, w.alice, fake.BotUser())
	return w
}

func button(id string) slack.Block {
	return slack.NewActionBlock("decide", slack.NewButtonBlockElement(id, "token", slack.NewTextBlockObject(slack.PlainTextType, "Approve", false, false)))
}

func (w *workspace) post(t *testing.T, options ...slack.MsgOption) (string, error) {
	t.Helper()
	_, ts, err := w.api.PostMessageContext(t.Context(), w.ops, append([]slack.MsgOption{slack.MsgOptionText("please approve", true)}, options...)...)
	return ts, err
}

func TestPostMessage_IsStoredAndUpdated(t *testing.T) {
	w := start(t, slackfake.Config{})
	ts, err := w.post(t, slack.MsgOptionBlocks(button("approve")), slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "request", EventPayload: map[string]any{"id": "r1"}}))
	if err != nil {
		t.Fatal(err)
	}
	history, err := w.api.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: w.ops, IncludeAllMetadata: true})
	if err != nil || len(history.Messages) != 1 || history.Messages[0].Metadata.EventPayload["id"] != "r1" {
		t.Fatalf("history %+v, %v; want the message with its metadata", history, err)
	}
	if _, _, _, err := w.api.UpdateMessageContext(t.Context(), w.ops, ts, slack.MsgOptionText("decided", true)); err != nil {
		t.Fatal(err)
	}
	if all := w.Messages(w.ops); len(all) != 1 || all[0].Text != "decided" || all[0].Blocks != nil {
		t.Fatalf("messages %+v; want one without buttons", all)
	}
}

func TestWebAPI_RejectsWhatSlackRejects(t *testing.T) {
	long := strings.Repeat("é", 3001)
	plain := func(text string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
	}
	cases := []struct {
		name, want string
		prepare    func(w *workspace)
		call       func(ctx context.Context, w *workspace) error
	}{
		{name: "invalid token", want: "invalid_auth", call: func(ctx context.Context, w *workspace) error {
			_, err := slack.New("xoxb-other", slack.OptionAPIURL(w.APIURL())).AuthTestContext(ctx)
			return err
		}},
		{name: "unknown channel", want: "channel_not_found", call: func(ctx context.Context, w *workspace) error {
			_, _, err := w.api.PostMessageContext(ctx, "C404", slack.MsgOptionText("x", true))
			return err
		}},
		{name: "public channel without the bot", want: "not_in_channel", call: func(ctx context.Context, w *workspace) error {
			id := w.AddChannel(slackfake.Channel{Name: "all"})
			_, _, err := w.api.PostMessageContext(ctx, id, slack.MsgOptionText("x", true))
			return err
		}},
		{name: "private channel without the bot", want: "channel_not_found", call: func(ctx context.Context, w *workspace) error {
			w.Leave(w.ops, w.BotUser())
			_, _, err := w.api.PostMessageContext(ctx, w.ops, slack.MsgOptionText("x", true))
			return err
		}},
		{name: "archived channel", want: "is_archived", call: func(ctx context.Context, w *workspace) error {
			w.SetChannel(w.ops, func(c *slackfake.Channel) { c.Archived = true })
			_, _, err := w.api.PostMessageContext(ctx, w.ops, slack.MsgOptionText("x", true))
			return err
		}},
		{name: "blocks without a text", want: "no_text", call: func(ctx context.Context, w *workspace) error {
			_, _, err := w.api.PostMessageContext(ctx, w.ops, slack.MsgOptionBlocks(button("a")))
			return err
		}},
		{name: "long section", want: "invalid_blocks", call: func(ctx context.Context, w *workspace) error {
			_, _, err := w.api.PostMessageContext(ctx, w.ops, slack.MsgOptionText("x", true), slack.MsgOptionBlocks(slack.NewSectionBlock(plain(long), nil, nil)))
			return err
		}},
		{name: "same block id twice", want: "invalid_blocks", call: func(ctx context.Context, w *workspace) error {
			_, _, err := w.api.PostMessageContext(ctx, w.ops, slack.MsgOptionText("x", true), slack.MsgOptionBlocks(button("a"), button("b")))
			return err
		}},
		{name: "header with markup", want: "invalid_blocks", call: func(ctx context.Context, w *workspace) error {
			header := slack.NewHeaderBlock(slack.NewTextBlockObject(slack.MarkdownType, "x", false, false))
			_, _, err := w.api.PostMessageContext(ctx, w.ops, slack.MsgOptionText("x", true), slack.MsgOptionBlocks(header))
			return err
		}},
		{name: "update of an unknown message", want: "message_not_found", call: func(ctx context.Context, w *workspace) error {
			_, _, _, err := w.api.UpdateMessageContext(ctx, w.ops, "1.2", slack.MsgOptionText("x", true))
			return err
		}},
		{name: "ephemeral message to a stranger", want: "user_not_in_channel", call: func(ctx context.Context, w *workspace) error {
			_, err := w.api.PostEphemeralContext(ctx, w.ops, w.AddUser("mallory"), slack.MsgOptionText("x", true))
			return err
		}},
		{name: "invented trigger id", want: "invalid_trigger_id", call: func(ctx context.Context, w *workspace) error {
			_, err := w.api.OpenViewContext(ctx, "1.2", slack.ModalViewRequest{Type: slack.VTModal, Title: plain("x")})
			return err
		}},
		{name: "unknown user group", want: "no_such_subteam", call: func(ctx context.Context, w *workspace) error {
			_, err := w.api.GetUserGroupMembersContext(ctx, "S404")
			return err
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.call(t.Context(), start(t, slackfake.Config{})); err == nil || err.Error() != c.want {
				t.Fatalf("error %v; want %s", err, c.want)
			}
		})
	}
}

func TestWebAPI_MissingScope(t *testing.T) {
	w := start(t, slackfake.Config{Scopes: []string{"chat:write"}})
	if _, err := w.api.GetConversationInfoContext(t.Context(), &slack.GetConversationInfoInput{ChannelID: w.ops}); err == nil || err.Error() != "missing_scope" {
		t.Fatalf("error %v; want missing_scope", err)
	}
}

func TestPostMessage_RateLimitPerChannel(t *testing.T) {
	w := start(t, slackfake.Config{})
	var err error
	for range 4 {
		_, err = w.post(t)
	}
	limited, ok := errors.AsType[*slack.RateLimitedError](err)
	if !ok || limited.RetryAfter < time.Second {
		t.Fatalf("error %v; want a rate limit with Retry-After", err)
	}
}

func TestFailNext_LosesTheResponseAfterAccepting(t *testing.T) {
	w := start(t, slackfake.Config{})
	w.FailNext("chat.postMessage", slackfake.Failure{LoseResponse: true})
	if _, err := w.post(t); err == nil {
		t.Fatal("the response arrived; want an error")
	}
	if all := w.Messages(w.ops); len(all) != 1 {
		t.Fatalf("%d messages; want the accepted one", len(all))
	}
}

func TestSetDown_ClosesConnections(t *testing.T) {
	w := start(t, slackfake.Config{})
	w.SetDown(true)
	if _, err := w.post(t); err == nil {
		t.Fatal("a call succeeded while Slack was down")
	}
	w.SetDown(false)
	if _, err := w.post(t); err != nil {
		t.Fatal(err)
	}
}

// app is a minimal app that verifies signatures and opens a modal for each click.
func app(t *testing.T, w *workspace, modal slack.ModalViewRequest) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v, err := slack.NewSecretsVerifier(r.Header, w.SigningSecret())
		if err == nil {
			_, _ = v.Write(body)
			err = v.Ensure()
		}
		if err != nil {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		form, _ := url.ParseQuery(string(body))
		var call slack.InteractionCallback
		_ = json.Unmarshal([]byte(form.Get("payload")), &call)
		switch call.Type {
		case slack.InteractionTypeBlockActions:
			if _, err := w.api.OpenViewContext(r.Context(), call.TriggerID, modal); err != nil {
				t.Errorf("open view: %v", err)
			}
			if _, err := w.api.OpenViewContext(r.Context(), call.TriggerID, modal); err == nil || err.Error() != "exchanged_trigger_id" {
				t.Errorf("second use of a trigger: %v", err)
			}
		case slack.InteractionTypeViewSubmission:
			if call.View.State.Values["reason"]["reason"].Value == "bad" {
				_ = json.NewEncoder(rw).Encode(slack.NewErrorsViewSubmissionResponse(map[string]string{"reason": "say more"}))
			}
		}
	}))
	t.Cleanup(server.Close)
	w.SetApp(server.URL, server.URL)
}

func TestClick_IsSignedAndOpensAModal(t *testing.T) {
	w := start(t, slackfake.Config{})
	plain := func(text string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
	}
	app(t, w, slack.ModalViewRequest{Type: slack.VTModal, Title: plain("Deny"), Submit: plain("Deny"), Blocks: slack.Blocks{BlockSet: []slack.Block{
		slack.NewInputBlock("reason", plain("Reason"), nil, slack.NewPlainTextInputBlockElement(nil, "reason")),
	}}})
	ts, err := w.post(t, slack.MsgOptionBlocks(button("deny")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Click(t.Context(), w.alice, w.ops, ts, "other"); !errors.Is(err, slackfake.ErrNoButton) {
		t.Fatalf("click on a missing button: %v", err)
	}
	d, err := w.Click(t.Context(), w.alice, w.ops, ts, "deny")
	if err != nil || d.Status != http.StatusOK {
		t.Fatalf("click: %+v, %v", d, err)
	}
	if errs, _, err := w.Submit(t.Context(), w.alice, nil); err != nil || errs["reason"] == "" {
		t.Fatalf("empty submission: %v, %v; want an error of the client", errs, err)
	}
	if errs, _, err := w.Submit(t.Context(), w.alice, map[string]string{"reason": "bad"}); err != nil || errs["reason"] != "say more" {
		t.Fatalf("bad submission: %v, %v; want the error of the app", errs, err)
	}
	if errs, _, err := w.Submit(t.Context(), w.alice, map[string]string{"reason": "good"}); err != nil || errs != nil {
		t.Fatalf("submission: %v, %v", errs, err)
	}
	if _, open := w.OpenView(w.alice); open {
		t.Fatal("the modal is still open")
	}
	old := w.Sign(d.Body, time.Now().Add(-10*time.Minute), w.SigningSecret())
	if stale, err := w.Post(t.Context(), d.URL, old, d.Body); err != nil || stale.Status != http.StatusUnauthorized {
		t.Fatalf("old request: %+v, %v; want 401", stale, err)
	}
}

func TestSocketMode_DeliversAndRepeats(t *testing.T) {
	w := start(t, slackfake.Config{})
	client := socketmode.New(w.api)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = client.RunContext(ctx) }()
	seen := make(chan string, 4)
	go func() {
		for event := range client.Events {
			if event.Type == socketmode.EventTypeInteractive {
				seen <- event.Request.EnvelopeID
				_ = client.Ack(*event.Request)
			}
		}
	}()
	for deadline := time.Now().Add(time.Minute); w.Sockets() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the app did not connect")
		}
	}
	ts, err := w.post(t, slack.MsgOptionBlocks(button("approve")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.Click(t.Context(), w.alice, w.ops, ts, "approve")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ReplayEnvelope(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if first, second := <-seen, <-seen; first != second {
		t.Fatalf("envelopes %s and %s; want the same id", first, second)
	}
}

func TestPage_ShowsMessagesAndClicks(t *testing.T) {
	w := start(t, slackfake.Config{})
	plain := slack.NewTextBlockObject(slack.PlainTextType, "Deny", false, false)
	app(t, w, slack.ModalViewRequest{Type: slack.VTModal, Title: plain, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}})
	text := slack.NewTextBlockObject(slack.PlainTextType, "<script>alert(1)</script> *not bold*", false, false)
	ts, err := w.post(t, slack.MsgOptionBlocks(slack.NewSectionBlock(text, nil, nil), button("approve")))
	if err != nil {
		t.Fatal(err)
	}
	page := get(t, w.URL())
	if !strings.Contains(page, "&lt;script&gt;") || strings.Contains(page, "<script>alert") || !strings.Contains(page, ">Approve</button>") {
		t.Fatalf("page:\n%s", page)
	}
	response, err := http.PostForm(w.URL()+"/client/click", url.Values{"as": {w.alice}, "channel": {w.ops}, "ts": {ts}, "action": {"approve"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), `role="dialog"`) {
		t.Fatalf("the page after the click has no modal:\n%s", body)
	}
}

func TestPage_ShowsADateByItsFallback(t *testing.T) {
	w := start(t, slackfake.Config{})
	text := slack.NewTextBlockObject(slack.MarkdownType, "Expires <!date^1795126213^{date_short_pretty} {time}|19 Nov 22:10 UTC> *soon*", false, false)
	if _, err := w.post(t, slack.MsgOptionBlocks(slack.NewContextBlock("", text))); err != nil {
		t.Fatal(err)
	}
	if page := get(t, w.URL()); !strings.Contains(page, "Expires 19 Nov 22:10 UTC <b>soon</b>") {
		t.Errorf("page:\n%s", page)
	}
}

func get(t *testing.T, target string) string {
	t.Helper()
	response, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
