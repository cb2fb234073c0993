package channel

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/actiontext"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/safehtml"
)

// holdKind is the kind of the holds of package graph.
const holdKind = "hold"

// question is a request in words.
type question struct {
	title, sentence string
	facts           []Fact
	said            []Quote
}

// wordQuestion words a request. data and masked are those of [desk.Request.MaskData].
func wordQuestion(r desk.Request, data json.RawMessage, masked []string, agent string) question {
	from := plain(firstOf(r.Subject.Requester, agent, "an agent"))
	switch r.Subject.Kind {
	case fermata.Approval.Name():
		var asked fermata.ApprovalRequest
		if json.Unmarshal(data, &asked) == nil && asked.Action != "" {
			return wordApproval(r, asked, masked, from, firstOf(agent, "agent"))
		}
	case fermata.EffectInDoubt.Name():
		var doubt fermata.InDoubtRequest
		if json.Unmarshal(data, &doubt) == nil && doubt.Action != "" {
			q := question{facts: factsOf(doubt.Args, nil, masked)}
			done := phraseOf(actiontext.Action{Name: doubt.Action, Args: doubt.Args, Masked: masked})
			q.title, q.sentence = "Did it happen? "+done, "It is not known whether this was done: "+done
			q.facts = append(q.facts, Fact{Label: "idempotency key", Value: plain(doubt.Key)})
			return q
		}
	}
	q := question{facts: factsOf(data, nil, masked)}
	kind := plain(r.Subject.Kind)
	q.title, q.sentence = from+" asks: "+kind, from+" asks for an answer: "+kind
	if r.Subject.Kind == holdKind {
		q.title, q.sentence = from+" is held", from+" is held until a person lets it continue"
	}
	return q
}

func wordApproval(r desk.Request, asked fermata.ApprovalRequest, masked []string, from, agent string) question {
	args, was := asked.Args, json.RawMessage(nil)
	if r.Edit != nil {
		args, was = r.MaskArgs(r.Edit.Args), asked.Args
	}
	q := question{facts: factsOf(args, was, masked)}
	action := phraseOf(actiontext.Action{Name: asked.Action, Args: args, Schema: asked.ArgsSchema, Masked: masked})
	q.title, q.sentence = capitalized(action), from+" wants to "+action
	if len(asked.Target) > 0 {
		q.facts = append(q.facts, factOf("current state of the target", asked.Target))
	}
	if asked.Voided != "" {
		q.facts = append(q.facts, Fact{Label: "asked again because", Value: plain(asked.Voided)})
	}
	if r.Edit == nil && asked.Summary != "" { // it describes the requested arguments
		q.said = append(q.said, Quote{By: plain(agent), Text: plainBlock(asked.Summary)})
	}
	return q
}

// NewFacts returns the members of a JSON object as facts. masked are JSON pointers of values that
// are masked.
func NewFacts(value json.RawMessage, masked []string) []Fact { return factsOf(value, nil, masked) }

// factsOf lists the members of a JSON value; was is the requested value if it was edited.
func factsOf(value, was json.RawMessage, masked []string) (facts []Fact) {
	if len(value) == 0 {
		return nil
	}
	n, err := safehtml.Parse(value)
	if err != nil || n.Kind != safehtml.Object {
		return []Fact{factOf("value", value)}
	}
	before := make(map[string]json.RawMessage)
	if old, err := safehtml.Parse(was); err == nil {
		for _, m := range old.Members {
			before[m.Name] = m.Value.Raw
		}
	}
	for _, m := range n.Members {
		f := factOf(m.Name, m.Value.Raw)
		f.Flagged = f.Flagged || safehtml.Flags(m.Name) > 0
		pointer := pointerTo(m.Name)
		f.Masked = slices.ContainsFunc(masked, func(p string) bool { return p == pointer || strings.HasPrefix(p, pointer+"/") })
		if len(was) > 0 && string(before[m.Name]) != string(m.Value.Raw) {
			f.Was = "(none)"
			if old, ok := before[m.Name]; ok {
				f.Was = factOf("", old).Value
			}
		}
		facts = append(facts, f)
	}
	return facts
}

// factOf words one value: a text without quotation marks, everything else as JSON.
func factOf(label string, value json.RawMessage) Fact {
	f := Fact{Label: plain(label), Value: plain(string(value))}
	n, err := safehtml.Parse(value)
	if err != nil {
		f.Flagged = true
		return f
	}
	f.Flagged = n.Flags() > 0
	switch n.Kind {
	case safehtml.String:
		f.Value = plainBlock(n.Text)
		if n.Text == "" {
			f.Value = `""`
		}
	case safehtml.Literal:
		f.Value = n.Text
	}
	return f
}

// phraseOf words an action as the web inbox does. Arguments with characters that could deceive are
// left out; they are among the facts.
func phraseOf(action actiontext.Action) string {
	if n, err := safehtml.Parse(action.Args); err == nil {
		action.Masked = slices.Clone(action.Masked)
		for _, m := range n.Members {
			if safehtml.Flags(m.Name) > 0 || m.Value.Flags() > 0 {
				action.Masked = append(action.Masked, pointerTo(m.Name))
			}
		}
	}
	var b strings.Builder
	for _, part := range actiontext.Of(action, actiontext.English) {
		b.WriteString(part.Text)
	}
	return plain(b.String())
}

// pointerTo is the JSON pointer of a member of the value.
func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
