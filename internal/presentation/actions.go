package presentation

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// The styles of actions.
const (
	stylePrimary = "primary"
	styleDanger  = "danger"
)

func (w *words) allows(verb requirement.Verb) bool { return slices.Contains(w.Verbs, verb) }

func verbAnswer(verb requirement.Verb) json.RawMessage {
	return json.RawMessage(`{"verb":"` + string(verb) + `"}`)
}

// addVerb adds a decision by a verb, if it is allowed.
func (w *words) addVerb(verb requirement.Verb, label, style string, form json.RawMessage) {
	if w.allows(verb) {
		w.Actions = append(w.Actions, api.Action{Name: string(verb), Label: label, Style: style, Answer: verbAnswer(verb), Form: form})
	}
}

// addReject adds the rejection. The person says why, in words or by a code of the rules.
func (w *words) addReject() {
	w.addVerb(requirement.VerbReject, w.t["reject"], styleDanger, w.reasonForm(w.t["why"], w.Request.Requirement.RejectReasons))
}

// addOtherActions adds what people can do besides deciding.
func (w *words) addOtherActions() {
	if w.allows(requirement.VerbEscalate) {
		if w.Request.Requirement.OnEscalate == requirement.EscalateReturns {
			w.Actions = append(w.Actions, api.Action{Name: "return", Label: w.t["return"], Detail: w.t["return detail"], Answer: json.RawMessage(`{"verb":"return"}`), Form: w.reasonForm(w.t["what to change"], nil)})
		} else if next, ok := w.Request.NextEscalation(); ok {
			w.Actions = append(w.Actions, api.Action{Name: string(requirement.VerbEscalate), Label: w.t["escalate"], Detail: escalationText(next)})
		}
	}
	if w.allows(requirement.VerbAskClarification) {
		w.Actions = append(w.Actions, api.Action{Name: string(requirement.VerbAskClarification), Label: w.t["ask"], Form: textForm(w.t["question"])})
	}
}

// escalationText says what a step of a route does: "page oncall:dba".
func escalationText(step desk.Step) string {
	var parts []string
	for _, does := range []struct {
		what    string
		targets []string
	}{{"page", step.Page}, {"notify", step.Notify}, {"remind", step.Remind}, {"widen", step.Widen}} {
		if len(does.targets) > 0 {
			parts = append(parts, does.what+" "+strings.Join(does.targets, ", "))
		}
	}
	return Plain(strings.Join(parts, "; "))
}

// reasonForm returns the schema of a reason. With codes, one of them is required and the text is
// not.
func (w *words) reasonForm(title string, codes []string) json.RawMessage {
	properties := map[string]any{"reason": map[string]any{"type": "string", "title": title, "minLength": 1, "maxLength": 4000}}
	required := []string{"reason"}
	if len(codes) > 0 {
		properties["codes"] = map[string]any{"type": "array", "title": w.t["reason code"], "minItems": 1, "maxItems": 1, "items": map[string]any{"enum": codes}}
		required = []string{"codes"}
	}
	return schema(properties, required)
}

func textForm(title string) json.RawMessage {
	return schema(map[string]any{"text": map[string]any{"type": "string", "title": title, "minLength": 1, "maxLength": 4000}}, []string{"text"})
}

func schema(properties map[string]any, required []string) json.RawMessage {
	text, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return text
}

// rawText is JSON as a text, to choose the first of several that is not empty.
type rawText string

func (t rawText) raw() json.RawMessage { return json.RawMessage(t) }
