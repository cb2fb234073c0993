package classifier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/agent/openai"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/dialog/classifier"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
)

// service is a model service that answers with one response, and keeps what it was asked.
type service struct {
	status   int
	response string
	hang     bool
	asked    string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a short body shows in the test
	if s.hang {                   // the next call can come before this one ends
		<-r.Context().Done()
		return
	}
	s.asked = string(body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.response) // the client is the test
}

func completion(message, finish string) string {
	return fmt.Sprintf(`{"id":"1","object":"chat.completion","created":1790000000,"model":"m","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, message, finish)
}

// judgement is the completion with a call of the tool.
func judgement(args string) *service {
	quoted, _ := json.Marshal(args) // a string
	return &service{status: 200, response: completion(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"judge","arguments":%s}}]}`, quoted), "tool_calls")}
}

func newClassifier(t *testing.T, s *service, timeout time.Duration, log ...io.Writer) *classifier.Classifier {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	model, err := openai.New(openai.Config{Model: "m", APIKey: "k", BaseURL: server.URL + "/v1", HTTPClient: server.Client(), MaxRetries: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := classifier.New(classifier.Config{Model: model, Timeout: timeout, Log: slog.New(slog.NewTextHandler(io.MultiWriter(log...), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	now   = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	annas = dialog.Question{
		Kind: dialog.Disambiguation, Text: "Which Anna?", AllowOther: true, StoredData: "secret draft", ToolResults: "secret result",
		Options: []dialog.Option{{ID: "anna-m", Label: "Anna Meier"}, {ID: "anna-s", Label: "Anna Schmidt"}},
	}
	transfer = dialog.Question{Kind: dialog.Confirmation, Text: "Transfer 5,000 €?", Risk: dialog.RiskHigh}
)

// play sends replies to a question, with the judgements of a model, and returns the question.
func play(t *testing.T, model dialog.Model, q dialog.Question, replies ...string) *dialog.Asking {
	t.Helper()
	var m conversation.Machine
	c := &dialog.Conversation{ID: "c", Language: dialog.English}
	if _, err := m.Add(c, "q", dialog.Target{Run: "r", Interrupt: "i"}, q, conversation.Known{}, now); err != nil {
		t.Fatal(err)
	}
	m.Next(c, now)
	for _, reply := range replies {
		msg := dialog.Message{Text: reply, Actor: "ada", At: now}
		if asking, ok := m.Consult(c, msg); ok {
			if j, err := model.Judge(t.Context(), asking, reply); err == nil {
				msg.Judgement = &j
			}
		}
		if _, err := m.Handle(c, msg, conversation.Known{}); err != nil {
			t.Fatal(err)
		}
	}
	return c.Find("q")
}

// A model that fails, contradicts itself or is not sure leads to another question: never to a yes,
// never to a cancellation, never to an option.
func TestJudge_FailureOrDoubtIsUnclear(t *testing.T) {
	plain := func(text, finish string) *service {
		return &service{status: 200, response: completion(fmt.Sprintf(`{"role":"assistant","content":%q}`, text), finish)}
	}
	cutOff := judgement(`{"verdict":"escape","score":1}`)
	cutOff.response = strings.Replace(cutOff.response, `"tool_calls"}]`, `"length"}]`, 1)
	for name, s := range map[string]*service{
		"overloaded":            {status: 529, response: `{}`},
		"wrong key":             {status: 401, response: `{"error":{"message":"no"}}`},
		"not JSON":              {status: 200, response: `escape`},
		"empty":                 {status: 200},
		"does not answer":       {hang: true},
		"text and no call":      plain("The user wants to escape.", "stop"),
		"refused":               plain("", "content_filter"),
		"cut off":               cutOff,
		"broken arguments":      judgement(`{"verdict":"escape","sco`),
		"unknown verdict":       judgement(`{"verdict":"yes","score":1}`),
		"score over 1":          judgement(`{"verdict":"escape","score":80}`),
		"negative score":        judgement(`{"verdict":"escape","score":-1}`),
		"score as text":         judgement(`{"verdict":"escape","score":"high"}`),
		"unknown option":        judgement(`{"verdict":"answer","score":1,"option":"anna-x","option_score":1}`),
		"reserved option":       judgement(`{"verdict":"answer","score":1,"option":"yes","option_score":1}`),
		"escape without score":  judgement(`{"verdict":"escape"}`),
		"escape below 0.8":      judgement(`{"verdict":"escape","score":0.79}`),
		"new intent below 0.8":  judgement(`{"verdict":"new_intent","score":0.79}`),
		"answer below 0.8":      judgement(`{"verdict":"answer","score":0.79,"option":"anna-m","option_score":1}`),
		"option below 0.8":      judgement(`{"verdict":"answer","score":1,"option":"anna-m","option_score":0.79}`),
		"margin below 0.15":     judgement(`{"verdict":"answer","score":1,"option":"anna-m","option_score":0.9,"runner_up":0.76}`),
		"explanation too long":  judgement(fmt.Sprintf(`{"verdict":"counter_question","score":1,"explanation":%q}`, strings.Repeat("x", 501))),
		"unclear":               judgement(`{"verdict":"unclear","score":1,"option":"anna-m","option_score":1}`),
		"option of a new topic": judgement(`{"verdict":"unclear","score":0.2,"option":"anna-m","option_score":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute
			if s.hang {
				timeout = 20 * time.Millisecond
			}
			model := newClassifier(t, s, timeout)
			for _, q := range []dialog.Question{annas, transfer} {
				a := play(t, model, q, "the one with the red hat")
				if a.Status != dialog.Asked || a.Answer != nil || a.Unclear != 1 || a.Turns[0].Verdict != dialog.IsUnclear {
					t.Errorf("%s: %s, %d unclear, %+v", q.Kind, a.Status, a.Unclear, a.Turns)
				}
			}
		})
	}
}

// The log has no texts of the user, also if the model repeats them in a wrong place.
func TestJudge_LogHasNoTextsOfTheUser(t *testing.T) {
	var log strings.Builder
	model := newClassifier(t, judgement(`{"verdict":"my PIN is 4711","score":1}`), time.Minute, &log)
	play(t, model, annas, "my PIN is 4711")
	if !strings.Contains(log.String(), "unknown verdict") || strings.Contains(log.String(), "4711") {
		t.Error(log.String())
	}
}

func TestJudge_AModelCannotConfirm(t *testing.T) {
	model := newClassifier(t, judgement(`{"verdict":"answer","score":1}`), time.Minute)
	if a := play(t, model, transfer, "let us get this show on the road"); a.Status != dialog.Asked || a.Answer != nil {
		t.Errorf("%s, %+v", a.Status, a.Answer)
	}
}

func TestJudge_SureJudgementsCount(t *testing.T) {
	for name, test := range map[string]struct {
		args    string
		status  dialog.Status
		verdict dialog.Verdict
		option  string
	}{
		"escape":           {`{"verdict":"escape","score":0.8}`, dialog.Escaped, dialog.IsEscape, ""},
		"new intent":       {`{"verdict":"new_intent","score":0.8}`, dialog.Asked, dialog.IsNewIntent, ""},
		"counter-question": {`{"verdict":"counter_question","score":0.8,"explanation":"Because of the address."}`, dialog.Asked, dialog.IsCounterQuestion, ""},
		"option":           {`{"verdict":"answer","score":0.8,"option":"anna-s","option_score":0.8,"runner_up":0.6}`, dialog.Answered, dialog.IsAnswer, "anna-s"},
	} {
		a := play(t, newClassifier(t, judgement(test.args), time.Minute), annas, "the one with the red hat")
		option := ""
		if a.Answer != nil {
			option = a.Answer.Option
		}
		if a.Status != test.status || a.Turns[0].Verdict != test.verdict || option != test.option {
			t.Errorf("%s: %s, %s, %q", name, a.Status, a.Turns[0].Verdict, option)
		}
	}
}

func TestJudge_DescribesAPerson(t *testing.T) {
	s := judgement(`{"verdict":"answer","score":0.9,"entity":{"id":"admin","name":"Eva Braun","role":"auditor","context":"the fair","facts":{"vip":"yes"}}}`)
	a := play(t, newClassifier(t, s, time.Minute), annas, "someone else", "It is that auditor Eva Braun I told you about, from the fair")
	if a.Status != dialog.Drafted || a.Draft.Name != "Eva Braun" || a.Draft.Role != "auditor" || a.Draft.Context != "the fair" || a.Draft.ID == "admin" || a.Draft.Facts != nil {
		t.Errorf("%s, %+v", a.Status, a.Draft)
	}
}

func TestJudge_SendsTheQuestionWithoutItsStoredData(t *testing.T) {
	s := judgement(`{"verdict":"unclear","score":1}`)
	play(t, newClassifier(t, s, time.Minute), annas, "the one with the red hat")
	for _, part := range []string{"Which Anna?", "anna-m", "red hat", `"name":"judge"`} {
		if !strings.Contains(strings.ReplaceAll(s.asked, `\"`, `"`), part) {
			t.Errorf("the request has no %s: %s", part, s.asked)
		}
	}
	if strings.Contains(s.asked, "secret") {
		t.Errorf("the request has stored data: %s", s.asked)
	}
}

func TestJudge_StopsWithTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newClassifier(t, &service{hang: true}, time.Hour).Judge(ctx, dialog.Asking{Question: annas}, "x"); err == nil {
		t.Error("no error")
	}
}

func TestNew_RejectsInvalidConfig(t *testing.T) {
	if _, err := classifier.New(classifier.Config{}); err == nil {
		t.Error("no model: no error")
	}
	if _, err := classifier.New(classifier.Config{Model: &openai.Model{}, Timeout: -1}); err == nil {
		t.Error("negative timeout: no error")
	}
}
