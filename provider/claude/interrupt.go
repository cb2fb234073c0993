package claude

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// questionKind is the kind of questions that the model asks with AskUserQuestion.
const questionKind = "claude-question"

// interrupt returns the open interrupt of a run.
func (s *state) interrupt(run provider.Run, g *Graph) (provider.Interrupt, error) {
	c := s.Pending.Call
	q := provider.Interrupt{
		ID: s.interruptID(run),
		Address: fermata.Address{
			{Type: fermata.SegmentRunnable, ID: run.Graph}, {Type: fermata.SegmentTool, ID: toolName(c.Tool), SubID: fmt.Sprint("call", s.Round)},
		},
	}
	var data any
	switch {
	case g.rule(c.Tool) == ruleQuestion:
		kind, answers, err := g.form(c)
		q.Envelope, q.AnswerSchema = fermata.Envelope{Kind: kind, Data: c.Input}, answers
		return q, err
	case s.Pending.InDoubt:
		approval, err := s.Pending.approval()
		if err != nil {
			return q, err
		}
		q.Kind, q.AnswerSchema = fermata.EffectInDoubt.Name(), fermata.EffectInDoubt.HumanAnswerSchema()
		given := s.Pending.Approved
		data = fermata.InDoubtRequest{
			Action: approval.Action, Args: given.Args, Digest: given.Digest, Key: effectKey(run, s.approvalID(run)), Started: given.At, Attempt: s.Pending.Attempt,
		}
	default:
		approval, err := s.Pending.approval()
		if err != nil {
			return q, err
		}
		if s.Pending.Voided > 0 {
			approval.Voided = s.Pending.Reason
		}
		q.Kind, q.AnswerSchema, data = fermata.Approval.Name(), fermata.Approval.HumanAnswerSchema(), approval
	}
	var err error
	q.Data, err = json.Marshal(data)
	return q, err
}

// effectKey is the idempotency key of a call.
func effectKey(run provider.Run, approval string) string {
	return ident.Derive("eff", run.Account, run.ID, approval)
}

// toolName returns the name of a tool that people see, in the alphabet of addresses.
func toolName(tool string) string { return strings.TrimPrefix(tool, "mcp__"+ownServer+"__") }

// approval returns the question about a call.
func (p *pending) approval() (fermata.ApprovalRequest, error) {
	return NewApproval(p.Call.Tool, p.Call.Input)
}

// argsSchema describes edited arguments: an object with the same members of the same types. The CLI
// does not pass the schema of a tool to a hook, and it checks the edited arguments itself.
func argsSchema(args json.RawMessage) json.RawMessage {
	members, err := strictjson.Members(args)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	type property struct {
		Type string `json:"type,omitempty"`
	}
	described := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties,omitempty"`
	}{"object", make(map[string]property)}
	for name, value := range members {
		described.Properties[name] = property{jsonType(value)}
	}
	text, err := json.Marshal(described)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return text
}

// jsonType returns the type of a scalar; "" for other values.
func jsonType(value json.RawMessage) string {
	switch value = bytes.TrimSpace(value); {
	case len(value) == 0:
		return ""
	case value[0] == '"':
		return "string"
	case value[0] == 't' || value[0] == 'f':
		return "boolean"
	case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
		return "number"
	}
	return ""
}

// form returns the kind and the answer schema of a question.
func (g *Graph) form(c call) (kind string, answers json.RawMessage, err error) {
	if q := g.question(c.Tool); q != nil {
		return q.Kind, q.Answer, nil
	}
	asked, err := decodeAsked(c.Input)
	if err != nil {
		return "", nil, err
	}
	answers, err = asked.schema()
	return questionKind, answers, err
}

// asked is the input of AskUserQuestion.
type asked struct {
	Questions []askedQuestion `json:"questions"`
}

type askedQuestion struct {
	Question string `json:"question"`
	Header   string `json:"header"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
	MultiSelect bool `json:"multiSelect"`
}

func decodeAsked(data json.RawMessage) (asked, error) {
	var a asked
	if err := json.Unmarshal(data, &a); err != nil || len(a.Questions) == 0 {
		return a, errors.New("claude: the questions of the model cannot be read")
	}
	var names []string
	for _, q := range a.Questions {
		if len(q.Options) == 0 || q.Question == "" || slices.Contains(names, q.Question) {
			return a, errors.New("claude: the questions of the model cannot be read")
		}
		names = append(names, q.Question, otherAnswer(q.Question))
	}
	return a, nil
}

// otherAnswer is the member for an answer that is not among the options.
func otherAnswer(question string) string { return question + " (other)" }

// schema returns the schema of an answer: each question has a member with the selected label, or
// the selected labels, and one for another answer in its own words.
func (a asked) schema() (json.RawMessage, error) {
	type property struct {
		Type        string    `json:"type"`
		Title       string    `json:"title,omitempty"`
		Description string    `json:"description,omitempty"`
		Enum        []string  `json:"enum,omitempty"`
		Items       *property `json:"items,omitempty"`
		Unique      bool      `json:"uniqueItems,omitempty"`
		MinLength   int       `json:"minLength,omitempty"`
	}
	properties := make(map[string]property)
	for _, q := range a.Questions {
		var labels, lines []string
		for _, option := range q.Options {
			labels = append(labels, option.Label)
			if option.Description != "" {
				lines = append(lines, option.Label+": "+option.Description)
			}
		}
		p := property{Type: "string", Title: q.Question, Description: strings.Join(lines, "; "), Enum: labels}
		if q.MultiSelect {
			p = property{Type: "array", Title: q.Question, Description: p.Description, Items: &property{Type: "string", Enum: labels}, Unique: true}
		}
		properties[q.Question] = p
		properties[otherAnswer(q.Question)] = property{Type: "string", Title: q.Question + " (another answer)", MinLength: 1}
	}
	return json.Marshal(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Additional bool                `json:"additionalProperties"`
	}{"object", properties, false})
}

// answers converts a person's answer to the form of the tool: a text for each question.
func (a asked) answers(answer json.RawMessage) (map[string]string, error) {
	var given map[string]any
	if err := json.Unmarshal(answer, &given); err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, q := range a.Questions {
		var all []string
		switch selected := given[q.Question].(type) {
		case string:
			all = append(all, selected)
		case []any:
			for _, label := range selected {
				all = append(all, fmt.Sprint(label))
			}
		}
		if other, ok := given[otherAnswer(q.Question)].(string); ok {
			all = append(all, other)
		}
		if len(all) == 0 || !q.MultiSelect && len(all) > 1 {
			return nil, fmt.Errorf("the question %q needs one answer: an option or another one", q.Question)
		}
		texts[q.Question] = strings.Join(all, ", ")
	}
	return texts, nil
}

// CheckAnswer validates an answer; see [provider.Provider].
func (p *Provider) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	g, err := p.graph(run.Graph)
	if err != nil {
		return nil, err
	}
	s, err := load(ctx, run)
	if err != nil {
		return nil, err
	}
	if s.Pending == nil || s.interruptID(run) != interrupt {
		return nil, fmt.Errorf("claude: the run has no open interrupt %q", interrupt)
	}
	q, err := s.interrupt(run, g)
	if err != nil {
		return nil, err
	}
	checked, err := checkAnswer(g, s.Pending.Call, q, answer)
	if err != nil {
		if wrong, ok := errors.AsType[*fermata.AnswerError](err); ok {
			err = wrong.Err
		}
		return nil, &fermata.AnswerError{ID: interrupt, Kind: q.Kind, Err: err}
	}
	return checked, nil
}

func checkAnswer(g *Graph, c call, q provider.Interrupt, answer json.RawMessage) (json.RawMessage, error) {
	if kind, ok := fermata.LookupKind(q.Kind); ok && g.rule(c.Tool) != ruleQuestion {
		checked, err := kind.Check(q.Data, answer)
		if err != nil || q.Kind != fermata.Approval.Name() {
			return checked, err
		}
		var decision fermata.Decision
		if err := json.Unmarshal(checked, &decision); err != nil {
			return nil, err
		}
		if decision.Verb == fermata.VerbExpire {
			return nil, fmt.Errorf("%q is reserved for expiry", fermata.VerbExpire)
		}
		return checked, nil
	}
	if err := strictjson.CheckValue(answer); err != nil {
		return nil, err
	}
	if err := schema.CheckData("answer", q.AnswerSchema, answer); err != nil {
		return nil, err
	}
	if g.question(c.Tool) == nil {
		asked, err := decodeAsked(c.Input)
		if err == nil {
			_, err = asked.answers(answer)
		}
		if err != nil {
			return nil, err
		}
	}
	return bytes.Clone(answer), nil
}

// approved is a given approval.
type approved struct {
	// Args are the approved arguments, which may have been edited.
	Args       json.RawMessage    `json:"args"`
	Edited     bool               `json:"edited,omitempty"`
	Digest     string             `json:"digest"`
	Conditions fermata.Conditions `json:"conditions,omitzero"`
	At         time.Time          `json:"at"`
	// Resolved is a person's answer about the call in doubt: it happened.
	Resolved *fermata.EffectResolution `json:"resolved,omitempty"`
}

// decision returns the decision in the answer to an approval.
func decision(answer provider.Answer) (fermata.Decision, error) {
	var d fermata.Decision
	if answer.Refusal != nil {
		d = answer.Refusal.Decision
	} else if err := json.Unmarshal(answer.Data, &d); err != nil {
		return d, err
	}
	d.By = cmp.Or(d.By, answer.By)
	return d, nil
}

// refusalText tells the model why a call was not made.
func refusalText(d fermata.Decision) string {
	verb := "rejected"
	if d.Verb == fermata.VerbReturn {
		verb = "returned for redesign"
	}
	text := "A person " + verb + " this call. It was not made."
	if d.By != "" {
		text = fmt.Sprintf("%s %s this call. It was not made.", d.By, verb)
	}
	if d.Reason != "" {
		text += " Reason: " + d.Reason
	}
	return text
}
