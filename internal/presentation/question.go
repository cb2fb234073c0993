package presentation

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/actiontext"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// textMembers are the members of a question that usually hold its text, the best first.
// contentMembers are those that hold what is reviewed.
var (
	textMembers    = []string{"question", "message", "title", "summary", "reason", "description", "text"}
	contentMembers = []string{"draft", "content", "document"}
)

// maxTitle is the length of the text of a question in a heading, and maxOptions how many options
// get an action of their own.
const (
	maxTitle       = 300
	maxReviewTitle = 120
	maxOptions     = 8
)

// question words every kind that Fermata does not know: by the text in its data, and by the schema
// of its answer.
func (w *words) question() {
	kind := Plain(w.Request.Subject.Kind)
	var text string
	members := membersOf(w.Data)
	if json.Unmarshal(w.Data, &text) != nil {
		for _, name := range textMembers {
			if text = stringOf(members[name]); text != "" {
				break
			}
		}
	}
	if heading := clip(Plain(strings.Join(strings.Fields(text), " ")), maxTitle); heading != "" {
		w.Title, w.Sentence = heading, w.from()+" "+w.t["asks"]+" "+heading
		if content := w.content(members); content != "" { // the heading alone is the same for every text
			w.Title = clip(heading+": "+Plain(strings.Join(strings.Fields(content), " ")), maxReviewTitle)
		}
	} else {
		about := capitalized(w.phrase(actiontext.Action{Name: w.Request.Subject.Kind, Args: w.Data, Schema: w.questionSchema(), Masked: w.Masked, Question: true}))
		w.Title, w.Sentence = cmp.Or(about, kind), w.from()+" "+w.t["asks for an answer"]+" "+cmp.Or(about, kind)
	}
	options := w.answerActions(members)
	w.Shape = "question"
	switch f := schemaform.New(w.AnswerSchema, nil); {
	case w.AnswerSchema == nil:
	case w.content(members) != "":
		w.Shape = "review"
	case options:
		w.Shape = "choice"
	case f.Kind == schemaform.Object:
		w.Shape = "form"
	}
	w.questionFacts(text, members)
}

// questionSchema returns the schema of the data; nil if the kind is not registered.
func (w *words) questionSchema() json.RawMessage {
	kind, known := fermata.LookupKind(w.Request.Subject.Kind)
	if !known {
		return nil
	}
	return kind.QuestionSchema()
}

// content returns the text that is reviewed; "" if there is none.
func (w *words) content(members map[string]json.RawMessage) string {
	for _, name := range contentMembers {
		if content := contentOf(members[name]); content != "" {
			return content
		}
	}
	return ""
}

// questionFacts lists what a question shows besides its actions: the content to review first.
func (w *words) questionFacts(text string, members map[string]json.RawMessage) {
	facts := w.factsOf(w.Data, nil, w.questionSchema())
	for i, f := range facts {
		if content := contentOf(members[f.Label]); content != "" && slices.Contains(contentMembers, f.Label) && !f.Masked {
			content := textFact(f.Label, content)
			facts = slices.Insert(slices.Delete(facts, i, i+1), 0, content)
			break
		}
	}
	w.Facts = slices.DeleteFunc(facts, func(f api.Fact) bool {
		switch f.Label {
		case "options":
			return len(w.Actions) > 1 && w.Request.Subject.Kind == choiceKind && hasOnly(members[f.Label], "id", "label", "detail")
		case "suggestedActions":
			return len(w.Actions) > 1 && hasOnly(members[f.Label], "id", "label", "action", "isPrimary")
		}
		return !f.Flagged && f.Value == text && len(text) <= maxTitle // the heading has all of it
	})
}

// answerActions adds one action for each option of the answer, and reports whether it has options
// alone; or one action for the form.
func (w *words) answerActions(members map[string]json.RawMessage) bool {
	if !w.allows(requirement.VerbRespond) {
		return false
	}
	form := FormSchema(w.Request.Subject.Kind, w.Data, w.AnswerSchema)
	member, options := choiceOf(form)
	if len(options) == 0 || len(options) > maxOptions {
		answer := api.Action{Name: string(requirement.VerbRespond), Label: w.t["answer"], Style: stylePrimary, Form: form}
		if form == nil {
			answer.Form = json.RawMessage("{}") // any JSON
		}
		w.Actions = append(w.Actions, answer)
		return len(options) > 0 && member == ""
	}
	rest, required := without(form, member)
	named := suggested(members, options)
	for i, option := range options {
		value := option.Value
		name := named[string(value)]
		label, detail, _ := strings.Cut(option.Title, " – ")
		a := api.Action{
			Name: string(requirement.VerbRespond), Label: clip(Plain(cmp.Or(name.Label, label, capitalized(humanize(stringOr(value))))), maxTitle), Detail: Plain(detail),
			Answer: value, Form: rest, Optional: rest != nil && !required,
		}
		if said := Plain(stringOr(value)); folded(a.Label) != folded(said) { // the agent chose the label
			a.Detail = strings.TrimSuffix(w.t["answers"]+" "+said+"; "+a.Detail, "; ")
		}
		switch s := stringOf(value); {
		case s == "reject" || s == "deny" || s == "decline":
			a.Style = styleDanger
		case i == 0 && len(named) == 0 || name.IsPrimary:
			a.Style = stylePrimary
		}
		if member != "" {
			a.Answer, _ = json.Marshal(map[string]json.RawMessage{member: value}) // valid JSON
		}
		w.Actions = append(w.Actions, a)
	}
	return rest == nil
}

// suggestion is an answer that the agent suggests.
type suggestion struct {
	Label     string          `json:"label"`
	Action    json.RawMessage `json:"action"`
	IsPrimary bool            `json:"isPrimary"`
}

// suggested returns the suggested answers of a question by their value. A label that names another
// option, or that two options have, is not used: it could make a person choose the wrong one.
func suggested(members map[string]json.RawMessage, options []schemaform.Option) map[string]suggestion {
	var list []suggestion
	if json.Unmarshal(members["suggestedActions"], &list) != nil {
		return nil
	}
	named, count := make(map[string]suggestion), make(map[string]int)
	for _, s := range list {
		count[folded(s.Label)]++
	}
	for _, s := range list {
		misleads := slices.ContainsFunc(options, func(o schemaform.Option) bool {
			return string(o.Value) != string(s.Action) && strings.Contains(folded(s.Label), folded(stringOr(o.Value)))
		})
		if misleads || count[folded(s.Label)] > 1 {
			s.Label = ""
		}
		named[string(s.Action)] = s
	}
	return named
}

// folded returns the letters and digits of a text in lower case.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// hasOnly reports whether a value is a list of objects with only these members, which are shown as
// actions.
func hasOnly(list json.RawMessage, names ...string) bool {
	var objects []map[string]json.RawMessage
	if json.Unmarshal(list, &objects) != nil {
		return false
	}
	return !slices.ContainsFunc(objects, func(o map[string]json.RawMessage) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(o)), func(name string) bool { return !slices.Contains(names, name) })
	})
}

// choiceOf returns the options of an answer that is a choice, or of the only required member of it.
func choiceOf(schema json.RawMessage) (member string, options []schemaform.Option) {
	if schema == nil {
		return "", nil
	}
	f := schemaform.New(schema, nil)
	if f.Kind == schemaform.Object {
		required := slices.DeleteFunc(slices.Clone(f.Fields), func(child *schemaform.Field) bool { return !child.Required })
		if len(required) != 1 {
			return "", nil
		}
		f = required[0]
	}
	if f.Kind != schemaform.Choice && f.Kind != schemaform.Boolean {
		return "", nil
	}
	return f.Name, f.Options
}

// without returns the schema of the other members of an answer, and whether one of them is
// required; nil if there are none.
func without(schema json.RawMessage, member string) (rest json.RawMessage, required bool) {
	var object map[string]json.RawMessage
	var properties map[string]json.RawMessage
	var needed []string
	if member == "" || json.Unmarshal(schema, &object) != nil || json.Unmarshal(object["properties"], &properties) != nil {
		return nil, false
	}
	_ = json.Unmarshal(object["required"], &needed) // without it nothing is required
	delete(properties, member)
	if len(properties) == 0 {
		return nil, false
	}
	needed = slices.DeleteFunc(needed, func(name string) bool { return name == member })
	changed := maps.Clone(object)
	delete(changed, "required")
	var err error
	if changed["properties"], err = json.Marshal(properties); err == nil && len(needed) > 0 {
		changed["required"], err = json.Marshal(needed)
	}
	if err == nil {
		rest, err = json.Marshal(changed)
	}
	if err != nil { // all of it was JSON
		return nil, false
	}
	return rest, len(needed) > 0
}

// FormSchema returns the schema of the form of an answer. The schema of a choice does not know the
// options of one question: its only required member gets them.
func FormSchema(kind string, data, schema json.RawMessage) json.RawMessage {
	options := OptionsOf(data)
	var object map[string]json.RawMessage
	var properties map[string]map[string]json.RawMessage
	var required []string
	if kind != choiceKind || len(options) == 0 || json.Unmarshal(schema, &object) != nil ||
		json.Unmarshal(object["properties"], &properties) != nil || json.Unmarshal(object["required"], &required) != nil || len(required) != 1 {
		return schema
	}
	field := properties[required[0]]
	if string(field["type"]) != `"string"` || field["enum"] != nil || field["oneOf"] != nil {
		return schema
	}
	type option struct {
		Const string `json:"const"`
		Title string `json:"title,omitempty"`
	}
	var list []option
	for _, o := range options {
		title := o.Label
		if o.Detail != "" {
			title += " – " + o.Detail
		}
		list = append(list, option{o.ID, title})
	}
	var err error
	if field["oneOf"], err = json.Marshal(list); err == nil {
		object["properties"], err = json.Marshal(properties)
	}
	changed, failed := json.Marshal(object)
	if err != nil || failed != nil { // all of it was JSON
		return schema
	}
	return changed
}

// Option is an option of a question of the kind choice.
type Option struct {
	ID     string `json:"id"`
	Label  string `json:"label"`
	Detail string `json:"detail"`
}

// OptionsOf returns the options in the data of a question, in order.
func OptionsOf(data json.RawMessage) []Option {
	var question struct {
		Options []Option `json:"options"`
	}
	if json.Unmarshal(data, &question) != nil || slices.ContainsFunc(question.Options, func(o Option) bool { return o.ID == "" }) {
		return nil
	}
	return question.Options
}

func membersOf(data json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members) // of anything else there are none
	return members
}

// contentOf returns a text, or the text in the content of an object.
func contentOf(value json.RawMessage) string {
	if text := stringOf(value); text != "" {
		return text
	}
	return stringOf(membersOf(value)["content"])
}

func stringOf(value json.RawMessage) string {
	var text string
	_ = json.Unmarshal(value, &text) // "" for other values
	return text
}

// stringOr returns a text, or another value as JSON.
func stringOr(value json.RawMessage) string { return cmp.Or(stringOf(value), string(value)) }

func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
