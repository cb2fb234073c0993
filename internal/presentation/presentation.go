// Package presentation words a request for people, once for all surfaces: the web inbox, Slack,
// e-mail, Teams, the terminal, the command line and the API show the same sentence, facts, evidence
// and actions. It knows every kind of request; nothing else has to.
package presentation

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/actiontext"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/safehtml"
)

// The kinds that have words of their own.
const (
	gateKind   = "approval-gate"
	holdKind   = "hold"
	choiceKind = "choice"
)

// Source is what a presentation is made of.
type Source struct {
	Request desk.Request
	// Data is what the request shows, with masked values, and Masked are their JSON pointers: see
	// [desk.Request.MaskData].
	Data   json.RawMessage
	Masked []string
	// Edited are the edited arguments, masked like the data; nil if they were not edited.
	Edited json.RawMessage
	// Address is the place of the request in its run.
	Address string
	// AnswerSchema is the JSON Schema of the answer; nil if every JSON is one.
	AnswerSchema json.RawMessage
	// Agent is the name of the agent or graph that asks.
	Agent string
	// Verbs are what the reader may do.
	Verbs []requirement.Verb
	// Language is that of the words.
	Language string
}

// Of returns the presentation of a request.
func Of(s Source) api.Presentation {
	w := words{s, texts(s.Language), api.Presentation{}}
	switch s.Request.Subject.Kind {
	case fermata.Approval.Name():
		var asked fermata.ApprovalRequest
		if json.Unmarshal(s.Data, &asked) == nil && asked.Action != "" {
			w.approval(asked)
			break
		}
		w.question()
	case fermata.EffectInDoubt.Name():
		var doubt fermata.InDoubtRequest
		if json.Unmarshal(s.Data, &doubt) == nil && doubt.Action != "" {
			w.doubt(doubt)
			break
		}
		w.question()
	case gateKind:
		w.gate()
	case holdKind:
		w.hold()
	default:
		w.question()
	}
	if stated := s.Request.Subject.StatedEnvironment; stated != "" {
		w.Facts = append(w.Facts, api.Fact{Label: w.t["environment"] + " (" + w.t["stated"] + ")", Value: Plain(stated)})
	}
	if s.Request.State != desk.StateOpen {
		w.Actions = nil
	} else {
		w.addOtherActions()
	}
	return w.Presentation
}

// words is a presentation in the making.
type words struct {
	Source
	t textTable
	api.Presentation
}

// from is who asks.
func (w *words) from() string {
	asks := cmp.Or(w.Request.Subject.Requester, w.Agent, w.t["an agent"])
	if person := w.Request.Subject.StatedRequester; person != "" && person != asks {
		asks += " " + w.t["phrase for"] + " " + person + " (" + w.t["stated"] + ")"
	}
	return Plain(asks)
}

func (w *words) approval(asked fermata.ApprovalRequest) {
	args, was := asked.Args, json.RawMessage(nil)
	edited := w.Edited != nil
	if edited {
		args, was = w.Edited, asked.Args
	}
	action := w.phrase(actiontext.Action{Name: asked.Action, Args: args, Schema: asked.ArgsSchema, Masked: w.Masked})
	w.Shape, w.Title, w.Sentence = "approval", capitalized(action), w.from()+" "+w.t["wants to"]+" "+action
	w.Facts = w.factsOf(args, was, asked.ArgsSchema)
	if asked.Voided != "" {
		w.Evidence = append(w.Evidence, api.Evidence{Title: w.t["asked again because"], Text: PlainBlock(asked.Voided)})
	}
	if len(asked.Target) > 0 {
		e := api.Evidence{Title: w.t["target"], Text: factOf("", asked.Target).Value}
		if len(asked.PreviousTarget) > 0 {
			e.Was = factOf("", asked.PreviousTarget).Value
		}
		w.Evidence = append(w.Evidence, e)
	}
	if !edited { // the rest describes the requested arguments
		for _, e := range asked.Evidence {
			w.Evidence = append(w.Evidence, api.Evidence{Title: Plain(e.Title), Source: Plain(e.Source), Text: PlainBlock(e.Text), URL: httpsURL(e.URL)})
		}
		if asked.Summary != "" {
			w.Said = append(w.Said, api.Quote{By: Plain(cmp.Or(w.Agent, w.t["agent"])), Text: PlainBlock(asked.Summary)})
		}
	}
	w.addVerb(requirement.VerbApprove, w.t["approve"], stylePrimary, nil)
	if w.allows(requirement.VerbEdit) && !asked.Fixed && len(w.Masked) == 0 && asked.Args != nil {
		edit := api.Action{Name: string(requirement.VerbEdit), Label: w.t["edit"], Answer: verbAnswer(requirement.VerbApprove), Form: cmp.Or(rawText(asked.ArgsSchema), "{}").raw(), At: "args", Value: args}
		if w.Request.Subject.Policy != "" {
			edit.Editable = w.Request.Requirement.Editable
		}
		w.Actions = append(w.Actions, edit)
	}
	w.addReject()
}

func (w *words) doubt(doubt fermata.InDoubtRequest) {
	done := w.phrase(actiontext.Action{Name: doubt.Action, Args: doubt.Args, Masked: w.Masked})
	w.Shape, w.Title, w.Sentence = "doubt", w.t["did it happen"]+" "+done, w.t["in doubt"]+" "+done
	w.Facts = append(w.factsOf(doubt.Args, nil, nil), api.Fact{Label: w.t["idempotency key"], Value: Plain(doubt.Key)})
	if doubt.Error != "" {
		w.Facts = append(w.Facts, api.Fact{Label: w.t["error"], Value: PlainBlock(doubt.Error)})
	}
	if w.allows(requirement.VerbRespond) {
		w.Actions = append(w.Actions,
			api.Action{Name: string(requirement.VerbRespond), Label: w.t["happened"], Detail: w.t["happened detail"], Style: stylePrimary, Answer: json.RawMessage(`{"happened":true}`)},
			api.Action{Name: string(requirement.VerbRespond), Label: w.t["not happened"], Detail: w.t["not happened detail"], Style: styleDanger, Answer: json.RawMessage(`{"happened":false}`)})
	}
}

func (w *words) gate() {
	var asked struct{ Gate, Message, CurrentStatus string }
	if json.Unmarshal(w.Data, &asked) != nil || asked.Gate == "" {
		w.question()
		return
	}
	w.Shape = "gate"
	w.Title = Plain(cmp.Or(asked.Message, humanize(asked.Gate)))
	w.Sentence = w.from() + " " + w.t["waits for approval"] + " " + w.Title
	w.Facts = append(w.Facts, api.Fact{Label: w.t["gate"], Value: Plain(asked.Gate)})
	if asked.CurrentStatus != "" {
		w.Facts = append(w.Facts, textFact(w.t["what"], asked.CurrentStatus))
	}
	w.addVerb(requirement.VerbApprove, w.t["approve"], stylePrimary, nil)
	w.addReject()
}

func (w *words) hold() {
	at, when := heldAt(w.Address)
	w.Shape = "hold"
	name := Plain(humanize(at))
	switch {
	case name == "":
		w.Title, w.Sentence = w.from()+" "+w.t["is held"], w.from()+" "+w.t["is held until"]
	case when == "after":
		w.Title = capitalized(w.t["after"] + " " + name)
		w.Sentence = w.from() + " " + w.t["is held after"] + " " + name
	default:
		w.Title = capitalized(name)
		w.Sentence = w.from() + " " + w.t["is held before"] + " " + name
	}
	members := membersOf(w.Data)
	w.Facts = slices.DeleteFunc(w.factsOf(w.Data, nil, w.AnswerSchema), func(f api.Fact) bool { return string(members[f.Label]) == `""` })
	w.addVerb(requirement.VerbApprove, w.t["approve"], stylePrimary, nil)
	if w.allows(requirement.VerbRespond) && len(w.Masked) == 0 {
		edit := api.Action{Name: string(requirement.VerbEdit), Label: w.t["edit"], Answer: verbAnswer(requirement.VerbApprove), Form: cmp.Or(rawText(w.AnswerSchema), "{}").raw(), At: "args", Value: w.Data}
		if w.Request.Subject.Policy != "" {
			edit.Editable = w.Request.Requirement.Editable
		}
		w.Actions = append(w.Actions, edit)
	}
	w.addReject()
}

func heldAt(address string) (node, when string) {
	at, err := fermata.ParseAddress(address)
	if err != nil || len(at) == 0 {
		return "", ""
	}
	switch last := at[len(at)-1]; last.Type {
	case fermata.SegmentHold:
		return last.SubID, last.ID
	case fermata.SegmentNode: // of another engine
		return last.ID, "before"
	}
	return "", ""
}

// phrase words an action. Arguments with characters that could deceive are left out; they are among
// the facts.
func (w *words) phrase(action actiontext.Action) string {
	action.Language = w.Language
	if n, err := safehtml.Parse(action.Args); err == nil {
		action.Masked = slices.Clone(action.Masked)
		for _, m := range n.Members {
			if safehtml.Flags(m.Name) > 0 || m.Value.Flags() > 0 {
				action.Masked = append(action.Masked, pointerTo(m.Name))
			}
		}
	}
	var text string
	for _, part := range actiontext.Of(action, func(word string) string { return cmp.Or(w.t["phrase "+word], word) }) {
		text += part.Text
	}
	return Plain(text)
}

// httpsURL returns an https address without credentials; "" for all others.
func httpsURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}
