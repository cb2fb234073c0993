package external_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

const action = `{"type":"object","required":["action"],"properties":{"action":{"enum":["approve","reject"]}},"additionalProperties":false}`

const refund = `{"kind":"refund","data":{"order":17},"answerSchema":` + action + `,"timeout":3600}`

func TestRequest_WaitsWithItsDataAndCompletesWithTheAnswer(t *testing.T) {
	o := begin(t, newProvider(t, nil), refund)
	q := o.asks()
	if q.Kind != "refund" || string(q.Data) != `{"order":17}` || string(q.AnswerSchema) != action || q.Timeout != time.Hour {
		t.Errorf("it asks %+v", q)
	}
	result, err := o.execute(says(q, `{"action":"reject"}`))
	done, ok := result.Outcome.(provider.Completed)
	if err != nil || !ok || string(done.Output) != `{"kind":"refund","answer":{"action":"reject"},"by":"ann","at":"2026-08-21T10:00:00Z"}` || !slices.Equal(result.Applied, []string{q.ID}) {
		t.Errorf("%#v, %v", result, err)
	}
}

func TestRequest_IsOneQuestionHoweverOftenAndWhereverItIsExecuted(t *testing.T) {
	o := begin(t, newProvider(t, nil), refund)
	first := o.asks()
	o.provider = newProvider(t, func(c *external.Config) { c.Allow = nil }) // another process
	if again := o.asks(); fmt.Sprint(again) != fmt.Sprint(first) || o.refs != 1 {
		t.Errorf("first %+v, then %+v, and %d refs", first, again, o.refs)
	}
	other := begin(t, o.provider, refund)
	other.run.ID = "run_2"
	if other.asks().ID == first.ID {
		t.Error("two runs have one interrupt id")
	}
	other = begin(t, o.provider, refund)
	other.run.Account = "globex"
	if other.asks().ID == first.ID {
		t.Error("two accounts have one interrupt id")
	}
}

func TestRequest_ThatWasNotWrittenDownIsNotAsked(t *testing.T) {
	o := begin(t, newProvider(t, nil), refund)
	o.setRef = store.ErrFenced
	if result, err := o.execute(); !errors.Is(err, store.ErrFenced) || result.Outcome != nil {
		t.Errorf("%#v, %v", result, err)
	}
	o.setRef = nil
	o.asks()
	if o.run.Ref == "" {
		t.Error("it has no ref")
	}
}

// A registered request does not change, even if a later version of the program or its config would
// reject it.
func TestRequest_StaysAsItWasAccepted(t *testing.T) {
	r := receive(t, nil)
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	o.provider = newProvider(t, func(c *external.Config) { c.Allow = nil })
	if again := o.asks(); again.ID != q.ID {
		t.Errorf("%+v", again)
	}
	if _, err := o.execute(says(q, `1`)); !errors.Is(err, provider.ErrPark) {
		t.Errorf("a callback that is no longer allowed: %v", err)
	}
	if _, tries := r.got(); tries != 0 {
		t.Error("it was called")
	}
}

// A callback URL may contain a secret, so it is stored in one place only.
func TestI7_TheCallbackIsNotInTheState(t *testing.T) {
	o := begin(t, newProvider(t, nil), asking("https://example.com/CANARY"))
	o.asks()
	saved, err := o.run.State.Load(t.Context(), store.Key{Account: "acme", Run: "run_1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range saved.Parts {
		if strings.Contains(string(part), "CANARY") || strings.Contains(string(part), o.run.Ref) {
			t.Errorf("%s holds %s", name, part)
		}
	}
}

type ticket struct {
	Title string `json:"title"`
}

type triage struct {
	Level int `json:"level"`
}

func (a triage) Validate() error {
	if a.Level > 3 {
		return errors.New("there is no such level")
	}
	return nil
}

var _ = fermata.NewKind[ticket, triage]("external-test-triage")

func TestI13_AnAnswerHasToFitItsSchemaAndItsKind(t *testing.T) {
	const approval = `{"kind":"approval","data":{"action":"drop","args":{"table":"users"},"argsSchema":{"required":["table"]}}}`
	for name, c := range map[string]struct {
		input, answer string
		fits          bool
	}{
		"fits":                   {refund, `{"action":"approve"}`, true},
		"no such choice":         {refund, `{"action":"maybe"}`, false},
		"one too many":           {refund, `{"action":"approve","admin":true}`, false},
		"another type":           {refund, `"approve"`, false},
		"two of one name":        {refund, `{"action":"reject","Action":"approve"}`, false},
		"no JSON":                {refund, `{`, false},
		"nothing":                {refund, ``, false},
		"no schema, any JSON":    {`{"kind":"free","data":1}`, `["what","ever"]`, true},
		"no schema, no JSON":     {`{"kind":"free","data":1}`, `what`, false},
		"a kind of this program": {`{"kind":"external-test-triage","data":{"title":"x"}}`, `{"level":3}`, true},
		"its schema":             {`{"kind":"external-test-triage","data":{"title":"x"}}`, `{"level":"high"}`, false},
		"its own check":          {`{"kind":"external-test-triage","data":{"title":"x"}}`, `{"level":4}`, false},
		"and the agent's schema": {`{"kind":"external-test-triage","data":{"title":"x"},"answerSchema":{"properties":{"level":{"maximum":2}}}}`, `{"level":3}`, false},
		"approval":               {approval, `{"verb":"approve"}`, true},
		"approval with edits":    {approval, `{"verb":"approve","args":{"table":"tmp"}}`, true},
		"invalid edits":          {approval, `{"verb":"approve","args":{}}`, false},
		"the clock's word":       {approval, `{"verb":"expire"}`, false},
		"edits without a schema": {`{"kind":"approval","data":{"action":"drop","args":{"table":"users"}}}`, `{"verb":"approve","args":{"table":"tmp"}}`, false},
		"an approve without one": {`{"kind":"approval","data":{"action":"drop","args":{"table":"users"}}}`, `{"verb":"approve"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, newProvider(t, nil), c.input)
			q := o.asks()
			before, err := o.run.State.Load(t.Context(), store.Key{Account: "acme", Run: "run_1"})
			if err != nil {
				t.Fatal(err)
			}
			checked, err := o.provider.CheckAnswer(t.Context(), o.run, q.ID, json.RawMessage(c.answer))
			unfit, isUnfit := errors.AsType[*fermata.AnswerError](err)
			switch {
			case c.fits && (err != nil || string(checked) != c.answer):
				t.Errorf("%s, %v", checked, err)
			case !c.fits && (!isUnfit || unfit.ID != q.ID || unfit.Kind != q.Kind || checked != nil):
				t.Errorf("%s, %v", checked, err)
			}
			after, err := o.run.State.Load(t.Context(), store.Key{Account: "acme", Run: "run_1"})
			if err != nil || after.Version != before.Version {
				t.Errorf("a check changed it: %v", err)
			}
		})
	}
}

func TestCheck_KnowsItsOwnQuestionOnly(t *testing.T) {
	o := begin(t, newProvider(t, nil), refund)
	if _, err := o.provider.CheckAnswer(t.Context(), o.run, "int_1", json.RawMessage(`1`)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before it is registered: %v", err)
	}
	o.asks()
	_, err := o.provider.CheckAnswer(t.Context(), o.run, "int_1", json.RawMessage(`{"action":"approve"}`))
	if _, unfit := errors.AsType[*fermata.AnswerError](err); err == nil || unfit {
		t.Errorf("another question: %v", err)
	}
}

// People approve a digest. It must match the action that they see.
func TestI6_AnApprovalIsBoundToTheActionThatIsShown(t *testing.T) {
	o := begin(t, newProvider(t, nil), `{"kind":"approval","data":{"action":"drop","args":{"b":1,"a":2}}}`)
	q := o.asks()
	var shown fermata.ApprovalRequest
	if err := json.Unmarshal(q.Data, &shown); err != nil {
		t.Fatal(err)
	}
	digest, err := shown.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`{"a":2,"b":1}`)})
	if err != nil || shown.Digest != digest || shown.Action != "drop" || q.AnswerSchema == nil {
		t.Errorf("%+v, %v", shown, err)
	}
	for name, data := range map[string]string{
		"a digest of another action": `{"action":"drop","args":{"a":2},"digest":"` + shown.Digest + `"}`,
		"no args":                    `{"action":"drop"}`,
		"no action":                  `{"args":{}}`,
		"something else":             `"drop"`,
		"an unknown member":          `{"action":"drop","args":{},"safe":true}`,
		"a circular schema":          `{"action":"drop","args":{},"argsSchema":{"$ref":"#"}}`,
	} {
		result, err := begin(t, newProvider(t, nil), `{"kind":"approval","data":`+data+`}`).execute()
		if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || failed.Code != "invalid_input" {
			t.Errorf("%s: %#v, %v", name, result, err)
		}
	}
}

func TestInput_InvalidInputReturnsInputError(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"no JSON":             {`{`, "input:"},
		"nothing":             {``, "input:"},
		"null":                {`null`, "kind: it is missing"},
		"no kind":             {`{"data":1}`, "kind: it is missing"},
		"no data":             {`{"kind":"x"}`, "data: it is missing"},
		"null data":           {`{"kind":"x","data":null}`, "data: it is missing"},
		"unknown member":      {`{"kind":"x","data":1,"secret":"CANARY"}`, `unknown field "secret"`},
		"in another case":     {`{"Kind":"x","data":1}`, `"Kind"`},
		"twice":               {`{"kind":"x","kind":"y","data":1}`, `"kind"`},
		"a long kind":         {`{"kind":"` + strings.Repeat("x", 129) + `","data":1}`, "kind: it must be a name of at most 128 bytes"},
		"a kind in two lines": {`{"kind":"x\ny","data":1}`, "kind:"},
		"our own kind":        {`{"kind":"effect-in-doubt","data":{}}`, "kind: only Fermata itself can ask with the kind effect-in-doubt"},
		"data of a kind":      {`{"kind":"external-test-triage","data":{"name":"CANARY"}}`, "data: it is not a question of kind external-test-triage"},
		"much data":           {`{"kind":"x","data":"` + strings.Repeat("x", limits.MaxDataBytes) + `"}`, "data: it has 262146 bytes"},
		"much":                {`{"kind":"x","data":1}` + strings.Repeat(" ", 2*limits.MaxDataBytes), "input: it has"},
		"a long schema":       {`{"kind":"x","data":1,"answerSchema":{"title":"` + strings.Repeat("x", 64<<10) + `"}}`, "answerSchema: it has"},
		"no schema":           {`{"kind":"x","data":1,"answerSchema":[]}`, "answerSchema: a JSON Schema must be an object"},
		"a broken schema":     {`{"kind":"x","data":1,"answerSchema":{"pattern":"("}}`, "answerSchema: it is not a JSON Schema"},
		"an invalid type":     {`{"kind":"x","data":1,"answerSchema":{"properties":{"why":{"type":"text"}}}}`, "answerSchema: unknown type"},
		"a circle":            {`{"kind":"x","data":1,"answerSchema":{"$ref":"#"}}`, "answerSchema: it refers to itself"},
		"a fraction":          {`{"kind":"x","data":1,"timeout":1.5}`, "timeout: it has the wrong type"},
		"a time with a unit":  {`{"kind":"x","data":1,"timeout":"1h"}`, "timeout: it has the wrong type"},
		"a negative time":     {`{"kind":"x","data":1,"timeout":-1}`, "timeout: it must be 1 to"},
		"a long time":         {`{"kind":"x","data":1,"timeout":99999999}`, "timeout: it must be 1 to"},
		"no URL":              {`{"kind":"x","data":1,"callback":{}}`, "callback.url: it is missing"},
		"http":                {asking("http://example.com/CANARY"), "callback.url: only https is allowed"},
		"ftp":                 {asking("ftp://example.com/CANARY"), "callback.url: only https is allowed"},
		"ftp, allowed host":   {asking("ftp://127.0.0.1/CANARY"), "callback.url: only https is allowed"},
		"a password":          {asking("https://ann:CANARY@example.com/"), "callback.url: it has a user or a password"},
		"a fragment":          {asking("https://example.com/#CANARY"), "callback.url: it has a fragment"},
		"another port":        {asking("https://example.com:8443/"), "callback.url: only port 443 is allowed"},
		"no host":             {asking("https:///CANARY"), "callback.url: it is not a URL with a host"},
		"no URL at all":       {asking("CANARY"), "callback.url: it is not a URL with a host"},
		"a long URL":          {asking("https://example.com/" + strings.Repeat("x", 2048)), "callback.url: it has 2068 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t, newProvider(t, nil), c.input)
			result, err := o.execute()
			failed, ok := result.Outcome.(provider.Failed)
			if err != nil || !ok || failed.Code != "invalid_input" || !strings.Contains(failed.Message, c.want) || strings.Contains(failed.Message, "CANARY") {
				t.Errorf("%#v, %v", result, err)
			}
			if _, err := o.run.State.Load(t.Context(), store.Key{Account: "acme", Run: "run_1"}); !errors.Is(err, store.ErrNotFound) || o.refs != 0 {
				t.Errorf("something was saved: %v, %d refs", err, o.refs)
			}
		})
	}
}

func TestExecute_HasOneGraph(t *testing.T) {
	o := begin(t, newProvider(t, nil), refund)
	graphs := o.provider.Graphs()
	if len(graphs) != 1 || graphs[0].Name != "request" || !json.Valid(graphs[0].Input) || o.provider.Name() != "external" {
		t.Errorf("%+v", graphs)
	}
	o.run.Graph = "another"
	if result, err := o.execute(); err == nil || result.Outcome != nil {
		t.Errorf("%#v, %v", result, err)
	}
}

func TestNew_RefusesAnAllowListThatMeansSomethingElse(t *testing.T) {
	for _, entry := range []string{"", "http://receiver.internal", "receiver.internal:80", "*.internal", "10.0.0.0/33", "a b"} {
		if _, err := external.New(external.Config{Allow: []string{entry}}); err == nil {
			t.Errorf("%q is allowed", entry)
		}
	}
}
