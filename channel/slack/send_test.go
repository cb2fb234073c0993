package slack_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/slackfake"
)

func TestNew_RefusesIncompleteConfig(t *testing.T) {
	for want, config := range map[string]slack.Config{
		"account is missing":        {BotToken: "xoxb-1", SigningSecret: "s"},
		"bot token":                 {Account: "a", BotToken: "xoxp-1", SigningSecret: "s"},
		"signing secret is missing": {Account: "a", BotToken: "xoxb-1"},
		"app token":                 {Account: "a", BotToken: "xoxb-1", AppToken: "xoxb-2"},
	} {
		if _, err := slack.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one about %q", err, want)
		}
	}
}

func TestSend_PostsAndReplacesWithoutButtons(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	c := card("r1")
	ref := w.send(t, channel.Message{Account: account, Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
	m := w.only(t, w.ops)
	if got := labels(t, m.Blocks); !slices.Equal(got, []string{"Approve", "Edit…", "Reject…", "Open in inbox", "Escalate", "Ask the agent…"}) {
		t.Errorf("buttons %q", got)
	}
	wantContains(t, string(m.Blocks), "120.00", "Rule: refunds", "Environment: prod", "1 of 2", "2 × finops", "1 h 30 min left")
	w.send(t, channel.Message{Account: account, Delivery: "d1", Attempt: 1, To: w.ops, Ref: ref, Card: closed(c)})
	m = w.only(t, w.ops)
	if got := labels(t, m.Blocks); !slices.Equal(got, []string{"Open in inbox"}) {
		t.Errorf("buttons of a decided request %q", got)
	}
	wantContains(t, string(m.Blocks), "approved by ann")
}

// The name of a channel works in place of its id. An unknown name fails without a call for each
// request, and a private channel is found after the bot was invited.
func TestSend_ChannelName(t *testing.T) {
	at := time.Now()
	w := openWorkspace(t, slackfake.Config{}, func(c *slack.Config) { c.Now = func() time.Time { return at } })
	hidden := w.AddChannel(slackfake.Channel{Name: "hidden", Private: true})
	ref := w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: "#ops", Card: card("r1")})
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: "#ops", Ref: ref, Card: closed(card("r1"))})
	wantContains(t, string(w.only(t, w.ops).Blocks), "approved by ann")
	for range 3 {
		_, err := w.channel.Send(t.Context(), channel.Message{Delivery: "d2", Attempt: 1, To: "#hidden", Card: card("r2")})
		if !channelerror.IsPermanent(err) || desk.NoticeFailureCode(err) != "channel_not_found" {
			t.Errorf("an unknown name: %v", err)
		}
	}
	if n := len(w.Calls("conversations.list")); n != 1 {
		t.Errorf("%d calls of conversations.list", n)
	}
	w.Join(hidden, w.BotUser())
	at = at.Add(2 * time.Minute)
	w.send(t, channel.Message{Delivery: "d2", Attempt: 2, To: "#hidden", Card: card("r2")})
	w.only(t, hidden)
}

func TestCheckAddress(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	for to, ok := range map[string]bool{"C0EMEA": true, "U0ANN": true, "S0OPS": true, "#ops": true, "#über-1": true, "ops": false, "": false, "#": false, "#Ops": false, "c0emea": false, "C0 EMEA": false} {
		if err := w.channel.CheckAddress(to); (err == nil) != ok {
			t.Errorf("%q: %v", to, err)
		}
	}
}

func TestSend_StepUpReplacesTheDecidingButtons(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	c := card("r1")
	c.MinAuth = requirement.AuthMFA
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
	if got := labels(t, w.only(t, w.ops).Blocks); !slices.Equal(got, []string{"Sign in to approve", "Escalate", "Ask the agent…"}) {
		t.Errorf("buttons %q", got)
	}
}

func TestSend_HostileTextIsNeverMarkup(t *testing.T) {
	hostile := "<https://evil.example|Approve here> <!here> <@U1> *bold* `code` :tada: &lt; \"}]"
	for name, change := range map[string]func(*channel.Card){
		"title":       func(c *channel.Card) { c.Title = hostile },
		"sentence":    func(c *channel.Card) { c.Sentence = hostile },
		"label":       func(c *channel.Card) { c.Facts[0].Label = hostile },
		"value":       func(c *channel.Card) { c.Facts[0].Value = hostile },
		"long value":  func(c *channel.Card) { c.Facts[0].Value = strings.Repeat(hostile, 10) },
		"was":         func(c *channel.Card) { c.Facts[0].Was = hostile },
		"said":        func(c *channel.Card) { c.Said = []api.Quote{{By: hostile, Text: hostile}} },
		"environment": func(c *channel.Card) { c.Environment = hostile },
		"rule":        func(c *channel.Card) { c.Rules = []string{hostile} },
		"reason":      func(c *channel.Card) { c.Reason = hostile },
		"progress":    func(c *channel.Card) { c.Progress = hostile },
		"decider":     func(c *channel.Card) { c.Deciders = []string{hostile} },
		"note":        func(c *channel.Card) { c.Notes = []channel.Note{{Quote: api.Quote{By: hostile, Text: hostile}}} },
	} {
		t.Run(name, func(t *testing.T) {
			w := openWorkspace(t, slackfake.Config{}, nil)
			c := card("r1")
			change(&c)
			ref := w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
			c.Outcome = hostile
			c.State = "answered"
			w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Ref: ref, Card: c})
			for _, call := range w.Calls("") {
				for _, text := range markup(t, []byte(call.Args["blocks"])) {
					if strings.Contains(text, "evil") || strings.Contains(text, "!here") {
						t.Errorf("markup contains the text: %s", text)
					}
				}
				if strings.Contains(call.Args["text"], "<") {
					t.Errorf("the notification has markup: %s", call.Args["text"])
				}
			}
		})
	}
}

func TestSend_LongRequestsFitAndCannotBeApprovedUnseen(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	c := card("r1")
	c.Title = strings.Repeat("é", 400)
	for i := range 80 {
		c.Facts = append(c.Facts, api.Fact{Label: fmt.Sprint("f", i), Value: strings.Repeat("ü", i*60)})
	}
	for range 10 {
		c.Said = append(c.Said, api.Quote{By: "bot", Text: strings.Repeat("ß", 9000)})
	}
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
	if got := labels(t, w.only(t, w.ops).Blocks); slices.Contains(got, "Approve") || !slices.Contains(got, "Open in inbox") {
		t.Errorf("buttons %q; want no Approve for a clipped request", got)
	}
}

func TestSend_LostResponseIsFound(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	w.FailNext("chat.postMessage", slackfake.Failure{LoseResponse: true})
	m := channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: card("r1")}
	if _, err := w.channel.Send(t.Context(), m); err == nil || channelerror.IsPermanent(err) {
		t.Fatalf("error %v; want one that is retried", err)
	}
	m.Attempt = 2
	ref, found, err := w.channel.Find(t.Context(), m)
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	m.Ref, m.Card = ref, closed(m.Card)
	w.send(t, m)
	wantContains(t, string(w.only(t, w.ops).Blocks), "approved by ann")
	m.Delivery = "d2"
	if _, found, err := w.channel.Find(t.Context(), m); found || err != nil {
		t.Fatalf("found another delivery: %v, %v", found, err)
	}
}

func TestSend_Errors(t *testing.T) {
	cases := []struct {
		name, code string
		permanent  bool
		retryAfter time.Duration
		prepare    func(w *workspace) (to string)
	}{
		{name: "unknown channel", code: "channel_not_found", permanent: true, prepare: func(*workspace) string { return "C404" }},
		{name: "not in the channel", code: "not_in_channel", permanent: true, prepare: func(w *workspace) string { return w.AddChannel(slackfake.Channel{Name: "all"}) }},
		{name: "archived", code: "is_archived", permanent: true, prepare: func(w *workspace) string {
			w.SetChannel(w.ops, func(c *slackfake.Channel) { c.Archived = true })
			return w.ops
		}},
		{name: "unknown user", code: "user_not_found", permanent: true, prepare: func(*workspace) string { return "U404" }},
		{name: "unknown group", code: "no_such_subteam", permanent: true, prepare: func(*workspace) string { return "S404" }},
		{name: "revoked token", code: "token_revoked", permanent: true, prepare: func(w *workspace) string {
			w.FailNext("chat.postMessage", slackfake.Failure{Code: "token_revoked"})
			return w.ops
		}},
		{name: "rate limit", code: "ratelimited", retryAfter: 30 * time.Second, prepare: func(w *workspace) string {
			w.FailNext("chat.postMessage", slackfake.Failure{RetryAfter: 30 * time.Second})
			return w.ops
		}},
		{name: "error of Slack", code: "fatal_error", prepare: func(w *workspace) string {
			w.FailNext("chat.postMessage", slackfake.Failure{Code: "fatal_error"})
			return w.ops
		}},
		{name: "outage", code: "unreachable", prepare: func(w *workspace) string { w.SetDown(true); return w.ops }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := openWorkspace(t, slackfake.Config{}, nil)
			_, err := w.channel.Send(t.Context(), channel.Message{Delivery: "d1", Attempt: 1, To: c.prepare(w), Card: card("r1")})
			e, ok := errors.AsType[*channel.Error](err)
			if !ok || e.Code != c.code || e.Permanent != c.permanent || e.RetryAfter != c.retryAfter {
				t.Fatalf("error %#v; want code %s, permanent %v, retry after %v", err, c.code, c.permanent, c.retryAfter)
			}
		})
	}
}

func TestSend_RetryAfterStopsFurtherPostsInTheChannelOnly(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	other := w.AddChannel(slackfake.Channel{Name: "other", Private: true})
	w.Join(other, w.BotUser())
	w.FailNext("chat.postMessage", slackfake.Failure{RetryAfter: 30 * time.Second})
	m := channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: card("r1")}
	_, first := w.channel.Send(t.Context(), m)
	_, second := w.channel.Send(t.Context(), m)
	if channelerror.RetryAfter(first) == 0 || channelerror.RetryAfter(second) == 0 {
		t.Fatalf("errors %v and %v; want rate limits", first, second)
	}
	if n := len(w.Calls("chat.postMessage")); n != 1 {
		t.Errorf("%d calls; want one", n)
	}
	m.To = other
	w.send(t, m)
}

func TestSend_StaysBelowTheLimitOfAChannel(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i := range 3 {
		if _, err := w.channel.Send(ctx, channel.Message{Delivery: fmt.Sprint("d", i), Attempt: 1, To: w.ops, Card: card(fmt.Sprint("r", i))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range w.Calls("chat.postMessage") {
		if call.Code != "" {
			t.Errorf("a call failed with %s", call.Code)
		}
	}
}

func TestSend_DirectMessagesAndUserGroups(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	bob := w.AddUser("bob")
	w.SetUserGroup("S0OPS", w.alice, bob)
	ref := w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: "S0OPS", Card: card("r1")})
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: "S0OPS", Ref: ref, Card: closed(card("r1"))})
	for _, user := range []string{w.alice, bob} {
		wantContains(t, string(w.only(t, w.DirectMessages(user)).Blocks), "approved by ann")
	}
}

func TestSend_BusyChannelGetsOneDigest(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{Rates: map[string]slackfake.Rate{}}, func(c *slack.Config) { c.DigestAbove = 1 })
	w.send(t, channel.Message{Delivery: "d0", Attempt: 1, To: w.ops, Card: card("r0")})
	refs := make([]string, 3)
	for i := range refs {
		refs[i] = w.send(t, channel.Message{Delivery: fmt.Sprint("d1", i), Attempt: 1, To: w.ops, Card: card(fmt.Sprint("r1", i))})
	}
	if refs[0] != refs[1] || refs[1] != refs[2] || len(w.Messages(w.ops)) != 2 {
		t.Fatalf("references %v, %d messages; want one digest", refs, len(w.Messages(w.ops)))
	}
	digest := w.Messages(w.ops)[1]
	wantContains(t, digest.Text, "3 further requests")
	if slices.Contains(labels(t, digest.Blocks), "Approve") {
		t.Error("a digest has a button that decides")
	}
	w.reopen(t) // the list survives a restart
	w.send(t, channel.Message{Delivery: "d10", Attempt: 1, To: w.ops, Ref: refs[0], Card: closed(card("r10"))})
	if digest = w.Messages(w.ops)[1]; !strings.Contains(digest.Text, "2 further requests") || strings.Contains(string(digest.Blocks), "/r10") {
		t.Fatalf("the digest still has the decided request: %s", digest.Blocks)
	}
}

func TestSend_QuestionsAndAnswersAreInTheThread(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	c := card("r1")
	ref := w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Card: c})
	c.Notes = []channel.Note{{Quote: api.Quote{By: "ann", Text: "Why 120?"}}}
	ref = w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Ref: ref, Card: c})
	c.Notes[0].Answer = &api.Quote{By: "bot", Text: "It was damaged."}
	ref = w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Ref: ref, Card: c})
	w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Ref: ref, Card: closed(c)})
	var thread []string
	for _, m := range w.Messages(w.ops) {
		if m.ThreadTS != "" {
			thread = append(thread, m.Text)
		}
	}
	if !slices.Equal(thread, []string{"ann asks the agent: Why 120?", "bot answers: It was damaged."}) {
		t.Fatalf("thread %q", thread)
	}
}

func TestSend_DeletedCopyIsPostedAgain(t *testing.T) {
	w := openWorkspace(t, slackfake.Config{}, nil)
	ref := w.send(t, channel.Message{Delivery: "d1", Attempt: 1, To: w.ops, Ref: w.ops + "/1.2", Card: card("r1")})
	if m := w.only(t, w.ops); ref != w.ops+"/"+m.TS {
		t.Fatalf("reference %q; want that of the new copy %s", ref, m.TS)
	}
}
