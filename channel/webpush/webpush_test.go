package webpush_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/pushfake"
)

type setup struct {
	channel *webpush.Channel
	service *pushfake.Service
	browser pushfake.Browser
	to      string
}

func newSetup(t *testing.T) setup {
	t.Helper()
	key, err := webpush.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s := setup{service: pushfake.New()}
	server := httptest.NewServer(s.service)
	t.Cleanup(server.Close)
	if s.channel, err = webpush.New(webpush.Config{Key: key, Subject: "https://example.com/contact", Allow: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	s.browser = s.service.Subscribe(server.URL, key.Public())
	subscription, err := s.channel.Subscribe(webpush.Subscription{Endpoint: s.browser.Endpoint, P256DH: s.browser.P256DH, Auth: s.browser.Auth})
	if err != nil {
		t.Fatal(err)
	}
	s.to = subscription.Address()
	return s
}

func (s setup) message(card channel.Card) channel.Message {
	card.Request, card.Title = "int_1", "Refund 120.25"
	if card.State == "" {
		card.State = desk.StateOpen
	}
	return channel.Message{Account: "acme", Delivery: "d1", Attempt: 1, Kind: desk.NoticeNotify, To: s.to, Card: card}
}

// last returns the last message of the browser, and its title and body.
func (s setup) last(t *testing.T) (m pushfake.Message, title, body string) {
	t.Helper()
	all := s.service.Messages(s.browser)
	if err := s.service.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%d messages, %v", len(all), err)
	}
	m = all[len(all)-1]
	var n struct{ Title, Body string }
	if err := json.Unmarshal(m.Data, &n); err != nil {
		t.Fatal(err)
	}
	return m, n.Title, n.Body
}

func (s setup) send(t *testing.T, m channel.Message) string {
	t.Helper()
	ref, err := s.channel.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestSend_HeaderFollowsTheRequest(t *testing.T) {
	s := newSetup(t)
	page := s.message(channel.Card{})
	page.Kind = desk.NoticePage
	for name, c := range map[string]struct {
		message channel.Message
		urgency string
		most    time.Duration
	}{
		"normal":       {s.message(channel.Card{Deadline: time.Now().Add(2 * time.Hour)}), "normal", 2 * time.Hour},
		"risk":         {s.message(channel.Card{Risk: 2, Deadline: time.Now().Add(time.Hour)}), "high", time.Hour},
		"page":         {page, "high", 24 * time.Hour},
		"due now":      {s.message(channel.Card{Deadline: time.Now()}), "normal", time.Minute},
		"far deadline": {s.message(channel.Card{Deadline: time.Now().Add(1000 * time.Hour)}), "normal", 28 * 24 * time.Hour},
		"ended":        {s.message(channel.Card{State: desk.StateDecided, Outcome: "approved by ann"}), "low", 24 * time.Hour},
	} {
		s.send(t, c.message)
		m, _, _ := s.last(t)
		if m.Urgency != c.urgency || m.TTL > c.most || m.TTL < c.most-10*time.Second {
			t.Errorf("%s: urgency %s, TTL %v; want %s, %v", name, m.Urgency, m.TTL, c.urgency, c.most)
		}
	}
	topics := make(map[string]bool)
	for _, m := range s.service.Messages(s.browser) {
		topics[m.Topic] = true
	}
	if len(topics) != 1 {
		t.Errorf("topics of one request: %v", topics)
	}
}

// Texts of a model are not sent, and a value has one line.
func TestSend_FactsOnly(t *testing.T) {
	s := newSetup(t)
	s.send(t, s.message(channel.Card{
		Presentation: api.Presentation{
			Facts: []api.Fact{{Label: "note", Value: "a\namount: 1"}, {Label: "to", Value: "U+200B x", Flagged: true}, {Label: "amount", Value: "2", Was: "3"}},
			Said:  []api.Quote{{By: "agent", Text: "model text"}},
		},
		Notes: []channel.Note{{Quote: api.Quote{Text: "model text"}}}, Reason: "model text",
	}))
	m, _, body := s.last(t)
	if strings.Contains(string(m.Data), "model text") {
		t.Errorf("text of the model: %s", m.Data)
	}
	if want := "note: a amount: 1\nto: U+200B x (contains unusual characters, check it in the inbox)\namount: 2 (was 3)"; body != want {
		t.Errorf("body %q", body)
	}
}

func TestSend_LongFactsFit(t *testing.T) {
	s := newSetup(t)
	for _, text := range []string{`"`, "\\", "😀", "<", "x"} {
		card := channel.Card{}
		for range 30 {
			card.Facts = append(card.Facts, api.Fact{Label: strings.Repeat(text, 300), Value: strings.Repeat(text, 3000)})
		}
		m := s.message(card)
		m.Card.Title = strings.Repeat(text, 5000)
		s.send(t, m)
		if _, title, body := s.last(t); title == "" || body == "" {
			t.Errorf("%q: title %q, body %q", text, title, body)
		}
	}
}

func TestSend_StatusOfThePushService(t *testing.T) {
	for _, c := range []struct {
		status    int
		after     string
		code      string
		permanent bool
		pause     time.Duration
	}{
		{http.StatusNotFound, "", channel.CodeGone, true, 0},
		{http.StatusGone, "", channel.CodeGone, true, 0},
		{http.StatusTooManyRequests, "30", "rate_limited", false, 30 * time.Second},
		{http.StatusServiceUnavailable, "5", "http_503", false, 5 * time.Second},
		{http.StatusForbidden, "", "http_403", true, 0},
		{http.StatusBadRequest, "", "http_400", true, 0},
	} {
		s := newSetup(t)
		s.service.Fail(c.status, c.after)
		_, err := s.channel.Send(t.Context(), s.message(channel.Card{}))
		if desk.NoticeFailureCode(err) != c.code || channelerror.IsPermanent(err) != c.permanent || channelerror.RetryAfter(err) != c.pause {
			t.Errorf("%d: %v, permanent %v, pause %v", c.status, err, channelerror.IsPermanent(err), channelerror.RetryAfter(err))
		}
	}
}

// A push service that accepts less gets the notification without facts.
func TestSend_TooLargeIsSentWithoutFacts(t *testing.T) {
	s := newSetup(t)
	s.service.Fail(http.StatusRequestEntityTooLarge, "")
	s.send(t, s.message(channel.Card{Presentation: api.Presentation{Facts: []api.Fact{{Label: "a", Value: "b"}}}}))
	if _, title, body := s.last(t); title != "Refund 120.25" || body != "" {
		t.Errorf("title %q, body %q", title, body)
	}
}

// A subscription that was made with another key of the server has ended.
func TestSend_OtherKeyOfTheServerIsGone(t *testing.T) {
	s, other := newSetup(t), newSetup(t)
	_, err := other.channel.Send(t.Context(), s.message(channel.Card{}))
	if desk.NoticeFailureCode(err) != channel.CodeGone || !channelerror.IsPermanent(err) {
		t.Error(err)
	}
}

func TestSubscribe_RejectsAddressesThatAreNotPublic(t *testing.T) {
	s := newSetup(t)
	good := webpush.Subscription{Endpoint: "https://push.example.com/1", P256DH: s.browser.P256DH, Auth: s.browser.Auth}
	if _, err := s.channel.Subscribe(good); err != nil {
		t.Error(err)
	}
	for _, endpoint := range []string{"", "http://push.example.com/1", "https://10.0.0.1/", "https://localhost/", "https://169.254.169.254/latest", "https://push.example.com:22/", "https://u:p@push.example.com/", "file:///etc/passwd", "https://[::1]/"} {
		bad := good
		bad.Endpoint = endpoint
		if _, err := s.channel.Subscribe(bad); err == nil {
			t.Errorf("%s was accepted", endpoint)
		}
	}
	for _, bad := range []webpush.Subscription{{Endpoint: good.Endpoint, P256DH: "BA", Auth: good.Auth}, {Endpoint: good.Endpoint, P256DH: good.P256DH, Auth: "AA"}} {
		if _, err := s.channel.Subscribe(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestKey_TextIsTheKey(t *testing.T) {
	key, err := webpush.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	again, err := webpush.ParseKey(key.Private() + "\n")
	if err != nil || again.Public() != key.Public() || len(key.Private()) != 43 || len(key.Public()) != 87 {
		t.Errorf("%v: %s, %s", err, key.Public(), again.Public())
	}
	for _, text := range []string{"", "secret text", strings.Repeat("A", 43), key.Public()} {
		if _, err := webpush.ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := webpush.New(webpush.Config{Key: key, Subject: "ops@example.com"}); err == nil {
		t.Error("a subject without mailto: was accepted")
	}
}
