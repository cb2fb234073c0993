package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/provider/inproc"
)

type errand struct {
	Text  string `json:"text"`
	Reply string `json:"reply,omitempty"`
}

// exactData has what a JSON encoder could change.
const exactData = "{\"b\":1,  \"a\":\"<ü>\\u00e9\"}\n"

// errandGraph asks which Anna, and for the details of a meeting.
func errandGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[errand]("errand")
	g.Node("only", func(ctx context.Context, s errand) (errand, error) {
		who, err := dialog.Ask(ctx, dialog.Question{
			Kind: dialog.Disambiguation, Text: "Which Anna?", Agent: "assistant", Node: "contacts", StoredData: exactData, ToolResults: exactData,
			Options: []dialog.Option{{ID: "anna-m", Label: "Anna Meier"}, {ID: "anna-s", Label: "Anna Schmidt"}},
		})
		var when dialog.Answer
		var formErr error
		if strings.Contains(s.Text, "meet") {
			when, formErr = dialog.Ask(ctx, dialog.Question{Kind: dialog.Form, Text: "When?", Fields: []dialog.Field{{Name: "day", Label: "Day", Type: dialog.DateField}}})
		}
		if err := errors.Join(err, formErr); err != nil {
			return s, err
		}
		s.Reply = "Done: " + who.Option + when.Fields["day"]
		return s, nil
	})
	g.Edge(graph.Start, "only")
	g.Edge("only", graph.End)
	return compiled(t, g, inproc.FlowConfig[errand]{Content: func(s errand) string { return s.Reply }})
}

// openConversations opens a server with an assistant.
func openConversations(t *testing.T, on store.Store, change func(*server.Config)) *site {
	t.Helper()
	person, err := runs.HandOver()
	if err != nil {
		t.Fatal(err)
	}
	var ec executor.Config
	s := openWith(t, func(c *server.Config) {
		connected, err := runs.New(runs.Config{Executor: c.Executor, Graph: "inproc:errand", Person: "inproc:" + runs.HandOverGraph, Input: func(s dialog.Start) (json.RawMessage, error) {
			return json.Marshal(errand{Text: s.Lines[len(s.Lines)-1].Text})
		}})
		if err != nil {
			t.Fatal(err)
		}
		c.Dialog, err = conversation.New(conversation.Config{Store: encrypted.New(ec.Store, ec.Sealer), Runs: connected, Machine: conversation.Machine{HandOver: true}})
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(c)
		}
	}, func(c *executor.Config) {
		if on != nil {
			c.Store = on
		}
		ec = *c
	}, errandGraph(t), person)
	s.e.StartWorkers()
	return s
}

const conversations = "/api/v1/conversations"

// say sends a message and returns the record.
func (s *site) say(token, id, body string) dialog.Record {
	s.Helper()
	got := s.call(token, "POST", conversations+"/"+id+"/messages", body)
	if got.status != http.StatusOK {
		s.Fatalf("%d %s", got.status, got.body)
	}
	return recordOf(s, got.body)
}

func recordOf(s *site, body string) (r dialog.Record) {
	s.Helper()
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		s.Fatal(err, body)
	}
	return r
}

func lastLine(r dialog.Record) string { return r.Lines[len(r.Lines)-1].Text }

func TestConversations_RecordHasEverythingByteForByte(t *testing.T) {
	s := openConversations(t, nil, nil)
	got := s.call("user@acme", "POST", conversations, `{"id":"c1","language":"en"}`)
	if got.status != http.StatusCreated || got.header.Get("Location") != conversations+"/c1" {
		t.Fatalf("%+v", got)
	}
	if r := s.say("user@acme", "c1", `{"id":"m1","text":"write to Anna"}`); !strings.Contains(lastLine(r), "Which Anna?") || r.Questions[0].Status != dialog.Asked {
		t.Fatalf("%+v", r.Lines)
	}
	for range 2 { // the same message counts once
		if r := s.say("user@acme", "c1", `{"id":"m2","text":"the second one"}`); lastLine(r) != "Done: anna-s" || len(r.Lines) != 4 {
			t.Fatalf("%+v", r.Lines)
		}
	}
	if got := s.call("user@acme", "POST", conversations+"/c1/messages", `{"id":"m2","text":"the first one"}`); got.status != 422 || got.field("code") != "idempotency_key_reused" {
		t.Errorf("another message with the id: %+v", got)
	}
	if got := s.call("user@acme", "POST", conversations, `{"id":"c1","language":"de"}`); got.status != 400 {
		t.Errorf("another language: %+v", got)
	}
	r := recordOf(s, s.call("user@acme", "GET", conversations+"/c1", "").body)
	a := r.Questions[0]
	if a.Question.StoredData != exactData || a.Question.ToolResults != exactData || a.Question.Node != "contacts" || a.Answer == nil || a.Answer.Raw != "the second one" ||
		len(a.Turns) != 1 || a.Turns[0].Question == "" || a.Target.Run == "" || a.Modality != dialog.Text || r.User != "user" {
		t.Errorf("%+v", a)
	}
	report := s.call("approver@acme", "GET", "/api/v1/analytics/conversations?days=1", "")
	if !strings.Contains(report.body, `"runs":1,"runs_with_questions":1`) || !strings.Contains(report.body, `"agent":"assistant"`) {
		t.Error(report.body)
	}
	list := s.call("user@acme", "GET", conversations, "")
	if !strings.Contains(list.body, `"title":"write to Anna"`) || !strings.Contains(list.body, `"open":0`) {
		t.Error(list.body)
	}
}

// A user sees own conversations only; an auditor reads those of all users of the account.
func TestConversations_OnlyTheUserAndAuditorsSeeThem(t *testing.T) {
	s := openConversations(t, nil, nil)
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.call("admin@acme", "POST", conversations, `{"id":"c2"}`)
	for _, test := range []struct {
		token, method, path, body string
		want                      int
	}{
		{"user@acme", "GET", "/c1", "", 200},
		{"user@acme", "GET", "/c2", "", 404},
		{"user@acme", "POST", "/c2/messages", `{"text":"x"}`, 404},
		{"user@acme", "GET", "/c2/events", "", 404},
		{"user@acme", "POST", "", `{"id":"c2"}`, 400},
		{"user@acme", "GET", "?all=true", "", 403},
		{"auditor@acme", "GET", "/c1", "", 200},
		{"auditor@acme", "GET", "?all=true", "", 200},
		{"auditor@acme", "POST", "/c1/messages", `{"text":"x"}`, 403},
		{"admin@acme", "POST", "/c1/messages", `{"text":"x"}`, 404},
		{"approver@acme", "GET", "/c1", "", 403},
		{"user@other", "GET", "/c1", "", 404},
		{"auditor@other", "GET", "/c1", "", 404},
	} {
		if got := s.call(test.token, test.method, conversations+test.path, test.body); got.status != test.want {
			t.Errorf("%+v: %d %s", test, got.status, got.body)
		}
	}
	var ids []string
	for next := ""; ; {
		got := s.call("auditor@acme", "GET", conversations+"?all=true&limit=1&cursor="+next, "")
		for _, item := range got.field("items").([]any) {
			ids = append(ids, item.(map[string]any)["id"].(string)+" of "+item.(map[string]any)["user"].(string))
		}
		if next, _ = got.field("next").(string); next == "" {
			break
		}
	}
	if !slices.Equal(ids, []string{"c1 of user", "c2 of admin"}) {
		t.Error(ids)
	}
}

func TestConversations_BadMessageNamesItsField(t *testing.T) {
	s := openConversations(t, nil, nil)
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.say("user@acme", "c1", `{"text":"meet Anna"}`)
	for body, want := range map[string]string{
		`{}`:          "body.text",
		`{"text":""}`: "body.text",
		`{"text":"a","choice":"b","question":"q1"}`:            "body",
		`{"choice":"anna-m"}`:                                  "body.question",
		`{"choice":"bob","question":"q1"}`:                     "body.choice",
		`{"choice":"anna-m","question":"q9"}`:                  "body.question",
		`{"fields":{"hour":"1"},"question":"q2"}`:              "body.fields",
		`{"replies":{"q9":{"text":"x"}}}`:                      "body.replies",
		`{"text":"x","modality":"song"}`:                       "body.modality",
		`{"text":"x","language":"xx"}`:                         "body.language",
		`{"text":"x","recognition":2}`:                         "body.recognition",
		`{"text":"` + strings.Repeat("x", 16385) + `"}`:        "body.text",
		`{"text":"` + strings.Repeat("ü", 9000) + `"}`:         "body.text",
		`{"text":"x","actor":"bob"}`:                           "body.actor",
		`{"digits":"1a","question":"q1"}`:                      "body.digits",
		`{"id":"` + strings.Repeat("x", 101) + `","text":"x"}`: "body.id",
	} {
		got := s.call("user@acme", "POST", conversations+"/c1/messages", body)
		if !slices.Contains([]int{400, 422}, got.status) || !strings.Contains(got.body, `"location":"`+want+`"`) || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.80s: %d %s, and not %s", body, got.status, got.body, want)
		}
	}
	for _, id := range []string{"a b", "-x", strings.Repeat("x", 101)} {
		if got := s.call("user@acme", "POST", conversations, fmt.Sprintf(`{"id":%q}`, id)); got.status != 400 && got.status != 422 || !strings.Contains(got.body, `"location":"body.id"`) {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if got := s.call("user@acme", "POST", conversations+"/c1/messages", `{"text":"`+strings.Repeat("x", 200<<10)+`"}`); got.status != 413 {
		t.Errorf("%d %s", got.status, got.body)
	}
	r := s.say("user@acme", "c1", `{"replies":{"q1":{"choice":"anna-m"},"q2":{"fields":{"day":"2027-05-31"}}}}`)
	if lastLine(r) != "Done: anna-m2027-05-31" {
		t.Errorf("%+v", r.Lines)
	}
	if got := s.call("user@acme", "POST", conversations+"/c1/messages", `{"choice":"anna-m","question":"q2"}`); got.status != 409 || got.field("code") != "question_closed" {
		t.Errorf("%+v", got)
	}
}

func TestConversations_RateIsLimitedPerConversation(t *testing.T) {
	s := openConversations(t, nil, func(c *server.Config) { c.Limits.MessageRate, c.Limits.MessageBurst = 0.01, 2 })
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.call("user@acme", "POST", conversations, `{"id":"c2"}`)
	s.say("user@acme", "c1", `{"text":"hello"}`)
	s.say("user@acme", "c1", `{"text":"first"}`)
	if got := s.call("user@acme", "POST", conversations+"/c1/messages", `{"text":"x"}`); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("%+v", got)
	}
	s.say("user@acme", "c2", `{"text":"hello"}`)
}

func TestConversations_RateIsLimitedPerUser(t *testing.T) {
	s := openConversations(t, nil, func(c *server.Config) { c.Limits.MessageRate, c.Limits.MessageBurst = 0.01, 1 })
	for n := range 6 {
		id := fmt.Sprint("c", n)
		s.call("user@acme", "POST", conversations, `{"id":"`+id+`"}`)
		got := s.call("user@acme", "POST", conversations+"/"+id+"/messages", `{"text":"hello"}`)
		if want := map[bool]int{true: 200, false: 429}[n < 5]; got.status != want {
			t.Errorf("message %d: %+v", n+1, got)
		}
	}
	s.call("admin@acme", "POST", conversations, `{"id":"other"}`)
	s.say("admin@acme", "other", `{"text":"hello"}`)
}

// The open requests of approvers limit the runs that users start, and not their answers.
func TestConversations_QuotaOfTheAccountLimitsNewRuns(t *testing.T) {
	s := openConversations(t, nil, func(c *server.Config) { c.Limits.OpenRequests = 1 })
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.call("user@acme", "POST", conversations, `{"id":"c2"}`)
	s.say("user@acme", "c1", `{"text":"write to Anna"}`)
	s.say("user@acme", "c2", `{"text":"write to Anna"}`) // questions to users do not count
	for range 3 {
		s.say("user@acme", "c1", `{"text":"blue"}`)
	}
	person := s.openRequests("acme")
	person = slices.DeleteFunc(person, func(q executor.RequestView) bool { return q.Kind != runs.Person.Name() })
	if len(person) != 1 {
		t.Fatalf("%d questions are handed over", len(person))
	}
	s.call("user@acme", "POST", conversations, `{"id":"c3"}`)
	if got := s.call("user@acme", "POST", conversations+"/c3/messages", `{"text":"write to Anna"}`); got.status != 429 || got.field("code") != "too_many_open" {
		t.Errorf("%+v", got)
	}
	if r := s.say("user@acme", "c2", `{"text":"the second one"}`); lastLine(r) != "Done: anna-s" {
		t.Errorf("%+v", r.Lines)
	}
	answer := s.call("approver@acme", "POST", "/api/v1/requests/"+person[0].ID+"/decision", `{"resumeId":"r1","shown":"`+person[0].Request.Digest()+`","answer":{"option":"anna-s"}}`)
	if answer.status != http.StatusOK {
		t.Fatalf("%+v", answer)
	}
	s.say("user@acme", "c3", `{"text":"write to Anna"}`)
}

// sse is an event of a stream.
type sse struct{ id, kind, data string }

// openStream starts a call that answers with events. next returns the next one; ok is false at the
// end.
func (s *site) openStream(token, method, path, body string, headers ...string) (next func() (e sse, ok bool), closeStream func()) {
	s.Helper()
	response, err := http.DefaultClient.Do(s.request(token, method, path, body, append(headers, "Accept", "text/event-stream")...))
	if err != nil || response.StatusCode != http.StatusOK {
		s.Fatal(response, err)
	}
	lines := bufio.NewScanner(response.Body)
	return func() (e sse, ok bool) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					return e, true
				}
			}
		}
		return e, false
	}, func() { _ = response.Body.Close() }
}

func TestConversations_MessageAsStreamEndsWithTheQuestion(t *testing.T) {
	s := openConversations(t, nil, nil)
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	s.say("user@acme", "c1", `{"text":"hello"}`)
	next, done := s.openStream("user@acme", "POST", conversations+"/c1/messages", `{"id":"m2","text":"second"}`)
	defer done()
	var lines []string
	var state string
	for e, ok := next(); ok; e, ok = next() {
		if e.kind == "state" {
			state = e.data
			continue
		}
		lines = append(lines, e.kind+" "+e.id)
		if e.id == "3" && !strings.Contains(e.data, `"text":"second"`) || e.id == "4" && !strings.Contains(e.data, "Done: anna-s") {
			t.Error(e)
		}
	}
	if !slices.Equal(lines, []string{"line 3", "line 4"}) || !strings.Contains(state, `"working":false,"open":[]`) {
		t.Errorf("%q, %s", lines, state)
	}
}

func TestConversations_EventsResumeAfterALine(t *testing.T) {
	s := openConversations(t, nil, nil)
	s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
	next, done := s.openStream("user@acme", "GET", conversations+"/c1/events", "")
	defer done()
	s.say("user@acme", "c1", `{"text":"hello"}`)
	var open string
	for open == "" {
		e, ok := next()
		if !ok {
			t.Fatal("the stream ended")
		}
		if e.kind == "state" && strings.Contains(e.data, `"open":["q1"]`) {
			open = e.data
		}
	}
	done()
	s.say("user@acme", "c1", `{"text":"first"}`)
	again, done := s.openStream("user@acme", "GET", conversations+"/c1/events", "", "Last-Event-ID", "2")
	defer done()
	if e, ok := again(); !ok || e.id != "3" || !strings.Contains(e.data, `"text":"first"`) {
		t.Errorf("%+v", e)
	}
	// the erasure of the account ends the stream
	if _, err := s.e.EraseAccount(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	for _, ok := again(); ok; _, ok = again() {
	}
	if got := s.call("user@acme", "GET", conversations+"/c1", ""); got.status != http.StatusNotFound {
		t.Errorf("%+v", got)
	}
}
