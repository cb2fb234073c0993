package presentation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/presentation"
	"github.com/fermata-go/fermata/internal/requirement"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// asked is a request as a run raises it.
type asked struct {
	kind, data, schema, address string
	need                        func(*requirement.Requirement)
	change                      func(*desk.RequestSpec)
}

// source returns the source of the presentation of an open request.
func (a asked) source(t *testing.T) presentation.Source {
	t.Helper()
	spec := desk.RequestSpec{ID: "req_1", Requirement: requirement.OnePerson(), Route: desk.DefaultRoute(), Subject: desk.Subject{Kind: a.kind, ShownDigest: "shown", Requester: "shop-bot"}}
	if a.kind == fermata.Approval.Name() {
		var approval fermata.ApprovalRequest
		if err := json.Unmarshal([]byte(a.data), &approval); err != nil {
			t.Fatal(err)
		}
		spec.Subject.Action, spec.Subject.ActionDigest, spec.Args = approval.Action, "d", approval.Args
	}
	if a.need != nil {
		a.need(&spec.Requirement)
	}
	if a.change != nil {
		a.change(&spec)
	}
	change, err := desk.New(spec, desk.Env{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	r := change.Request
	masked, pointers := r.MaskData(json.RawMessage(a.data))
	s := presentation.Source{Request: r, Data: masked, Masked: pointers, Address: a.address, Agent: "shop", Verbs: r.Requirement.Verbs}
	if a.schema != "" {
		s.AnswerSchema = json.RawMessage(a.schema)
	}
	return s
}

var kinds = map[string]asked{
	"approval": {kind: "approval", data: `{"action":"refund","args":{"amount":120.00,"currency":"EUR","order":17,"iban":"DE02"},"digest":"d","summary":"The customer is angry.","target":{"status":"paid"},"before":{"status":"open"},"voided":"the order changed","evidence":[{"title":"Order","source":"shop","text":"17: 1 cup\n18: 2 cups","url":"https://shop.example/17"},{"title":"Bad link","url":"javascript:alert(1)"}]}`, need: func(r *requirement.Requirement) {
		r.Sensitive = []string{"/iban"}
	}},
	"approval-editable": {kind: "approval", data: `{"action":"refund","args":{"amount":120.00},"argsSchema":{"type":"object","properties":{"amount":{"type":"number"}}},"digest":"d"}`, need: func(r *requirement.Requirement) {
		r.Editable, r.RejectReasons = []string{"/amount"}, []string{"fraud", "late"}
	}, change: func(s *desk.RequestSpec) { s.Subject.Policy, s.Route = "p", desk.DefaultRoute("oncall:dba") }},
	"money": {kind: "approval", data: `{"action":"refund","args":{"amount":"1234.50","currency":"EUR","fee_cents":8000,"order":17},"argsSchema":{"type":"object","properties":{"amount":{"type":"string","format":"money","x-currency-field":"/currency"},"fee_cents":{"type":"integer","format":"money","x-currency":"EUR","x-minor-units":2}}},"fixed":true,"digest":"d"}`},
	"gate":  {kind: "approval-gate", data: `{"gate":"design_approval","message":"Review the design","currentStatus":"two services,\none queue"}`, schema: `{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"}},"required":["approved"]}`},
	"hold": {kind: "hold", data: `{"request":"forget customer 42","where":{"customer":"42"},"log":[],"approval":""}`, address: "runnable:dataops;hold:before#transform_destructive", need: func(r *requirement.Requirement) {
		r.OnEscalate, r.Editable = requirement.EscalateReturns, []string{"/where"}
	}, change: func(s *desk.RequestSpec) { s.Subject.Policy = "p" }},
	"choice":     {kind: "choice", data: `{"question":"Which backup?","options":[{"id":"02:00","label":"Last night","detail":"loses six hours"},{"id":"none","label":"None"}]}`, schema: `{"type":"object","properties":{"choice":{"type":"string"}},"required":["choice"]}`},
	"yes-no":     {kind: "confirm-order", data: `"Send the order?"`, schema: `{"type":"boolean"}`},
	"review":     {kind: "content-review", data: `{"reason":"Content ready for review","draft":{"id":"d1","content":"Five things\nabout tea."},"warnings":["it is short"],"suggestedActions":[{"id":"approve","label":"Approve & publish","action":"approve","isPrimary":true},{"id":"reject","label":"Reject","action":"reject"}]}`, schema: `{"type":"object","properties":{"action":{"enum":["approve","revise","reject"]},"feedback":{"type":"string"}},"required":["action"]}`},
	"form":       {kind: "supplier", data: `{"question":"Who is the supplier?"}`, schema: `{"type":"object","properties":{"name":{"type":"string"},"vat":{"type":"string"}},"required":["name","vat"]}`},
	"question":   {kind: "which_table", data: `{"rows":7}`, schema: `{"type":"string"}`},
	"any-answer": {kind: "interrupt", data: `{"n":1}`},
	"doubt":      {kind: "effect-in-doubt", data: `{"action":"payout","args":{"amount":5},"digest":"d","key":"k-1","started":"2026-03-02T12:00:00Z","error":"no answer","try":1}`},
}

// The files in testdata are what every surface shows and offers.
func TestOf_EveryKind(t *testing.T) {
	for name, a := range kinds {
		for _, lang := range language.All {
			s := a.source(t)
			s.Language = lang
			text, err := json.Marshal(presentation.Of(s))
			if err != nil {
				t.Fatal(err)
			}
			golden.CompareJSON(t, "testdata/"+name+"."+lang+".json", text, "\t")
		}
	}
}

// Every decision that is offered is complete, or becomes complete with its form.
func TestOf_ActionsAreCompleteOrHaveAForm(t *testing.T) {
	for name, a := range kinds {
		p := presentation.Of(a.source(t))
		if len(p.Actions) < 2 || p.Title == "" || p.Sentence == "" {
			t.Errorf("%s: %+v", name, p)
		}
		primary := 0
		for _, action := range p.Actions {
			if action.Style == "primary" {
				primary++
			}
			if action.Label == "" || action.Answer == nil && action.Form == nil && action.Name != "escalate" {
				t.Errorf("%s: %+v", name, action)
			}
		}
		if primary > 1 {
			t.Errorf("%s has %d main actions", name, primary)
		}
	}
}

// A closed request, and one that the reader may not decide, offers nothing.
func TestOf_OffersOnlyWhatIsPossible(t *testing.T) {
	s := kinds["approval"].source(t)
	s.Verbs = nil
	if p := presentation.Of(s); len(p.Actions) > 0 {
		t.Errorf("offers %+v", p.Actions)
	}
	s = kinds["gate"].source(t)
	s.Request.State = desk.StateDecided
	if p := presentation.Of(s); len(p.Actions) > 0 {
		t.Errorf("offers %+v", p.Actions)
	}
	s = kinds["approval"].source(t)
	s.Verbs = []requirement.Verb{requirement.VerbReject}
	if p := presentation.Of(s); len(p.Actions) != 1 || p.Actions[0].Name != "reject" {
		t.Errorf("offers %+v", p.Actions)
	}
}

// Characters that deceive are shown as codes in every text, and arguments with them are not in the
// heading.
func TestOf_HostileTexts(t *testing.T) {
	const hostile = "a\u202eb\u200b\x1b[31m\nApproved by: ann"
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range kinds {
		for _, text := range []string{"refund", "Review the design", "forget customer 42", "Which backup?", "Last night", "Send the order?", "Five things\\nabout tea.", "which_table", "payout", "Order", "no answer"} {
			a := a
			a.data = strings.ReplaceAll(a.data, `"`+text+`"`, string(quoted))
			p := presentation.Of(a.source(t))
			texts := []string{p.Title, p.Sentence}
			for _, f := range p.Facts {
				texts = append(texts, f.Label, f.Value)
			}
			for _, e := range p.Evidence {
				texts = append(texts, e.Title, e.Source, e.Text)
			}
			for _, q := range p.Said {
				texts = append(texts, q.By, q.Text)
			}
			for _, action := range p.Actions {
				texts = append(texts, action.Label, action.Detail)
			}
			for i, text := range texts {
				if strings.ContainsAny(text, "\u202e\u200b\x1b") || i < 2 && strings.Contains(text, "\n") {
					t.Errorf("%s: %q", name, text)
				}
			}
		}
	}
}

// An edit is what is approved; texts about the requested arguments are left out.
func TestOf_EditedArguments(t *testing.T) {
	s := kinds["approval-editable"].source(t)
	s.Edited = json.RawMessage(`{"amount":90}`)
	p := presentation.Of(s)
	want := api.Fact{Label: "amount", Value: "90", Was: "120.00"}
	if !slices.Contains(p.Facts, want) || !strings.Contains(p.Title, "90") || len(p.Said) > 0 {
		t.Errorf("%+v", p)
	}
}

// An argument that an edit removed is shown.
func TestOf_RemovedArguments(t *testing.T) {
	s := kinds["approval"].source(t)
	s.Edited = json.RawMessage(`{"amount":120.00,"currency":"EUR","order":17}`)
	if p := presentation.Of(s); !slices.ContainsFunc(p.Facts, func(f api.Fact) bool { return f.Label == "iban" && f.Value == "(removed)" && f.Was == desk.Masked }) {
		t.Errorf("%+v", p.Facts)
	}
}

// Data that is not shown as actions is shown as facts, whatever its name is.
func TestOf_DropsNoData(t *testing.T) {
	a := asked{kind: "change", data: `{"question":"Apply the change?","options":{"drop_database":true},"suggestedActions":"wipes prod","excluded":[],"max":null}`, schema: `{"type":"boolean"}`}
	p := presentation.Of(a.source(t))
	for _, label := range []string{"options", "suggestedActions", "excluded", "max"} {
		if !slices.ContainsFunc(p.Facts, func(f api.Fact) bool { return f.Label == label }) {
			t.Errorf("%s is not among %+v", label, p.Facts)
		}
	}
	a = asked{kind: "choice", data: `{"question":"Which plan?","options":[{"id":"a","label":"A","price":9},{"id":"b","label":"B"}]}`, schema: kinds["choice"].schema}
	if p := presentation.Of(a.source(t)); !slices.ContainsFunc(p.Facts, func(f api.Fact) bool { return f.Label == "options" && strings.Contains(f.Value, "price") }) {
		t.Errorf("%+v", p.Facts)
	}
}

// A label of the agent cannot hide what is answered.
func TestOf_MisleadingLabels(t *testing.T) {
	for suggestions, want := range map[string][]string{
		`[{"label":"Approve","action":"reject"},{"label":"No, reject it","action":"approve"}]`: {"Approve", "Reject"},
		`[{"label":"Yes","action":"reject"},{"label":"Yes","action":"approve"}]`:               {"Approve", "Reject"},
		`[{"label":"Do not reject","action":"reject","isPrimary":true}]`:                       {"Approve", "Do not reject: answers reject"},
	} {
		a := asked{kind: "review", data: `{"question":"Publish?","suggestedActions":` + suggestions + `}`, schema: `{"enum":["approve","reject"]}`}
		var got []string
		for _, action := range presentation.Of(a.source(t)).Actions {
			if action.Name == "respond" {
				got = append(got, strings.TrimSuffix(action.Label+": "+action.Detail, ": "))
			}
			if string(action.Answer) == `"reject"` && action.Style != "danger" {
				t.Errorf("%+v", action)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", suggestions, got, want)
		}
	}
}
