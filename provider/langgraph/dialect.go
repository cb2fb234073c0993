package langgraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// dialect is the form of an interrupt's value and of its answer.
type dialect string

const (
	dialectPlain      dialect = ""           // any value, any answer
	dialectMiddleware dialect = "middleware" // LangChain's middleware: action_requests and decisions
	dialectCamel      dialect = "camel"      // the same in JavaScript: actionRequests
	dialectInbox      dialect = "inbox"      // Agent Inbox: action_request, and a list with one answer
	dialectBreakpoint dialect = "breakpoint" // no value: the graph stops before or after a node
)

// holdKind is the kind of a breakpoint: it shows the state, and the answer is null or a change of
// the state.
const holdKind = "hold"

// verdicts are the answers that the agent accepts to an action.
type verdicts struct {
	Approve bool `json:"approve,omitempty"`
	Edit    bool `json:"edit,omitempty"`
	Reject  bool `json:"reject,omitempty"`
	Respond bool `json:"respond,omitempty"`
}

// textSchema is the schema of an answer that is a text.
var textSchema = json.RawMessage(`{"type":"string","minLength":1}`)

// middlewareRequest is the value of LangChain's human-in-the-loop middleware, in the spellings of
// Python and JavaScript.
type middlewareRequest struct {
	Actions   list[action]       `json:"action_requests"`
	ActionsJS list[action]       `json:"actionRequests"`
	Configs   list[reviewConfig] `json:"review_configs"`
	ConfigsJS list[reviewConfig] `json:"reviewConfigs"`
}

type action struct {
	Name        string          `json:"name"`
	Args        json.RawMessage `json:"args"`
	Description string          `json:"description"`
}

type reviewConfig struct {
	Name      string          `json:"action_name"`
	NameJS    string          `json:"actionName"`
	Allowed   list[string]    `json:"allowed_decisions"`
	AllowedJS list[string]    `json:"allowedDecisions"`
	Schema    json.RawMessage `json:"args_schema"`
	SchemaJS  json.RawMessage `json:"argsSchema"`
}

// inboxRequest is the value of Agent Inbox.
type inboxRequest struct {
	Action *struct {
		Action string          `json:"action"`
		Args   json.RawMessage `json:"args"`
	} `json:"action_request"`
	Config struct {
		Accept  bool `json:"allow_accept"`
		Edit    bool `json:"allow_edit"`
		Respond bool `json:"allow_respond"`
		Ignore  bool `json:"allow_ignore"`
	} `json:"config"`
	Description string `json:"description"`
}

// questionsOf returns the questions of an interrupt: one for each action. An unknown form is one
// plain question. It returns errTooMany if there are too many actions.
func questionsOf(i rawInterrupt) ([]question, error) {
	digest := digestOf(i.Value)
	questions, err := middlewareQuestions(i.Value)
	if err != nil || questions != nil {
		return complete(questions, i, digest), err
	}
	if q, ok := inboxQuestion(i.Value); ok {
		return complete([]question{q}, i, digest), nil
	}
	value := i.Value
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	return complete([]question{{Kind: fermata.PlainKind, Data: value, Schema: usable(i.ResponseSchema)}}, i, digest), nil
}

func complete(questions []question, i rawInterrupt, digest string) []question {
	for n := range questions {
		questions[n].Interrupt, questions[n].Index, questions[n].Digest = i.ID, n, digest
	}
	return questions
}

// usable returns the schema, or nil if answers cannot be validated against it.
func usable(text json.RawMessage) json.RawMessage {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	if _, err := schema.Parse(text); err != nil || schema.CheckTypes(text) != nil || strictjson.CheckValue(text) != nil {
		return nil
	}
	return text
}

// middlewareQuestions returns nil for a value of another form.
func middlewareQuestions(value json.RawMessage) ([]question, error) {
	var r middlewareRequest
	if err := json.Unmarshal(value, &r); errors.Is(err, errTooMany) {
		return nil, err
	} else if err != nil {
		return nil, nil
	}
	form := dialectMiddleware
	if len(r.Actions) == 0 {
		r.Actions, r.Configs, form = r.ActionsJS, r.ConfigsJS, dialectCamel
	}
	var questions []question
	for _, a := range r.Actions {
		var may verdicts
		var argsSchema json.RawMessage
		for _, config := range r.Configs {
			if config.Name != a.Name && config.NameJS != a.Name {
				continue
			}
			allowed := slices.Concat(config.Allowed, config.AllowedJS)
			may = verdicts{slices.Contains(allowed, "approve"), slices.Contains(allowed, "edit"), slices.Contains(allowed, "reject"), slices.Contains(allowed, "respond")}
			if argsSchema = config.Schema; argsSchema == nil {
				argsSchema = config.SchemaJS
			}
		}
		q, ok := actionQuestion(a.Name, a.Description, a.Args, argsSchema, may)
		if !ok {
			return nil, nil // people would approve something that they cannot see
		}
		q.Dialect = form
		questions = append(questions, q)
	}
	return questions, nil
}

func inboxQuestion(value json.RawMessage) (question, bool) {
	var wrapped list[json.RawMessage]
	if json.Unmarshal(value, &wrapped) == nil && len(wrapped) == 1 {
		value = wrapped[0]
	}
	var r inboxRequest
	if json.Unmarshal(value, &r) != nil || r.Action == nil {
		return question{}, false
	}
	// Agent Inbox itself always lets a person ignore a request.
	may := verdicts{Approve: r.Config.Accept, Edit: r.Config.Edit, Reject: true, Respond: r.Config.Respond}
	q, ok := actionQuestion(r.Action.Action, r.Description, r.Action.Args, nil, may)
	q.Dialect = dialectInbox
	return q, ok
}

// actionQuestion returns the question about an action: an approval, or if the agent accepts only a
// text instead of the action, a question with this answer.
func actionQuestion(name, description string, args, argsSchema json.RawMessage, may verdicts) (question, bool) {
	if name == "" {
		return question{}, false
	}
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if !may.Approve && !may.Edit && may.Respond {
		data, err := json.Marshal(struct {
			Action      string          `json:"action"`
			Args        json.RawMessage `json:"args"`
			Description string          `json:"description,omitempty"`
		}{name, args, description})
		return question{Kind: fermata.PlainKind, Data: data, Schema: textSchema, Verdicts: may}, err == nil
	}
	asked := fermata.ApprovalRequest{Action: name, Summary: description, Args: args, Fixed: !may.Edit}
	if may.Edit {
		if asked.ArgsSchema = usable(argsSchema); asked.ArgsSchema == nil {
			asked.ArgsSchema = schemaOf(args)
		}
	}
	digest, err := asked.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: args})
	if err != nil {
		return question{}, false
	}
	asked.Digest = digest
	data, err := json.Marshal(asked)
	return question{Kind: fermata.Approval.Name(), Data: data, Schema: fermata.Approval.HumanAnswerSchema(), Verdicts: may}, err == nil
}

// schemaOf returns a schema for edited arguments of an action that declares none: the arguments
// that it has, with the types that they have.
func schemaOf(args json.RawMessage) json.RawMessage {
	members, err := strictjson.Members(args)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	properties := make(map[string]any, len(members))
	for name, value := range members {
		kind := ""
		switch value = bytes.TrimSpace(value); value[0] {
		case '"':
			kind = "string"
		case '{':
			kind = "object"
		case '[':
			kind = "array"
		case 't', 'f':
			kind = "boolean"
		case 'n':
		default:
			kind = "number"
		}
		if properties[name] = (map[string]string{}); kind != "" {
			properties[name] = map[string]string{"type": kind}
		}
	}
	text, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": false})
	if err != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return text
}

// check validates an answer, and returns it as it is stored.
func (q *question) check(answer json.RawMessage) (json.RawMessage, error) {
	if err := strictjson.Check(answer); err != nil {
		return nil, err
	}
	if q.Kind == fermata.Approval.Name() {
		checked, err := fermata.Approval.Check(q.Data, answer)
		if err != nil {
			if unfit, ok := errors.AsType[*fermata.AnswerError](err); ok {
				err = unfit.Err
			}
			return nil, err
		}
		_, err = q.decision(checked)
		return checked, err
	}
	if q.Dialect == dialectBreakpoint {
		return q.checkState(answer)
	}
	if string(bytes.TrimSpace(answer)) == "null" {
		return nil, errors.New("null is not an answer")
	}
	if err := schema.CheckData("answer", q.Schema, answer); err != nil {
		return nil, err
	}
	return bytes.Clone(answer), nil
}

// decision decodes a decision about an action that the agent accepts.
func (q *question) decision(answer json.RawMessage) (d fermata.Decision, err error) {
	if err := json.Unmarshal(answer, &d); err != nil {
		return d, err
	}
	switch {
	case d.Verb == fermata.VerbExpire:
		return d, fmt.Errorf("%q is reserved for expiry", fermata.VerbExpire)
	case d.Verb == fermata.VerbApprove && d.Args == nil && !q.Verdicts.Approve:
		return d, errors.New("the agent accepts this action only with edited arguments")
	case (d.Verb == fermata.VerbReject || d.Verb == fermata.VerbReturn) && !q.Verdicts.Reject && !q.Verdicts.Respond:
		return d, errors.New("the agent does not accept a rejection of this action")
	}
	return d, nil
}

// message returns the text for the agent of a decision that does not approve.
func message(d fermata.Decision) string {
	text := d.Reason
	for _, code := range d.Codes {
		if text != "" {
			text += "; "
		}
		text += code
	}
	if d.Verb == fermata.VerbReturn {
		return "Returned for changes: " + text
	}
	return text
}

// resumeValue returns the answer of a group in the dialect of its interrupt.
func (g *group) resumeValue() (any, error) {
	first := g.questions[0]
	switch first.Dialect {
	case dialectMiddleware, dialectCamel:
		decisions := make([]any, 0, len(g.questions))
		for _, q := range g.questions {
			value, err := q.middlewareDecision()
			if err != nil {
				return nil, err
			}
			decisions = append(decisions, value)
		}
		return map[string]any{"decisions": decisions}, nil
	case dialectInbox:
		value, err := first.inboxResponse()
		return []any{value}, err
	}
	return first.Answer, nil
}

type object = map[string]any

func (q *question) asked() (asked fermata.ApprovalRequest, err error) {
	err = json.Unmarshal(q.Data, &asked)
	return asked, err
}

func (q *question) middlewareDecision() (any, error) {
	if q.Kind != fermata.Approval.Name() {
		return object{"type": "respond", "message": q.Answer}, nil
	}
	asked, err := q.asked()
	if err != nil {
		return nil, err
	}
	d, err := q.decision(q.Answer)
	switch {
	case err != nil:
		return nil, err
	case d.Verb == fermata.VerbApprove && d.Args == nil:
		return object{"type": "approve"}, nil
	case d.Verb == fermata.VerbApprove:
		name := "edited_action"
		if q.Dialect == dialectCamel {
			name = "editedAction"
		}
		return object{"type": "edit", name: object{"name": asked.Action, "args": d.Args}}, nil
	case !q.Verdicts.Reject:
		return object{"type": "respond", "message": "Rejected: " + message(d)}, nil
	}
	rejection := object{"type": "reject"}
	if text := message(d); text != "" {
		rejection["message"] = text
	}
	return rejection, nil
}

func (q *question) inboxResponse() (any, error) {
	if q.Kind != fermata.Approval.Name() {
		return object{"type": "response", "args": q.Answer}, nil
	}
	asked, err := q.asked()
	if err != nil {
		return nil, err
	}
	d, err := q.decision(q.Answer)
	switch {
	case err != nil:
		return nil, err
	case d.Verb == fermata.VerbApprove && d.Args == nil:
		return object{"type": "accept", "args": nil}, nil
	case d.Verb == fermata.VerbApprove:
		return object{"type": "edit", "args": object{"action": asked.Action, "args": d.Args}}, nil
	case q.Verdicts.Respond && message(d) != "":
		return object{"type": "response", "args": "Rejected: " + message(d)}, nil
	}
	return object{"type": "ignore", "args": nil}, nil
}

// checkState returns the whole state after an answer to a breakpoint, which is null or an object
// with the values to change; null if it changes nothing.
func (q *question) checkState(answer json.RawMessage) (json.RawMessage, error) {
	if string(bytes.TrimSpace(answer)) == "null" {
		return bytes.Clone(answer), nil
	}
	if _, err := strictjson.Members(answer); err != nil {
		return nil, errors.New("the answer to a breakpoint is null or an object with the values to change")
	}
	var state, changes map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(q.Data, &state), json.Unmarshal(answer, &changes)); err != nil {
		return nil, err
	}
	maps.Copy(state, changes)
	return json.Marshal(state)
}

// changedValues returns the values of a state that differ from those that the question shows: only
// they are written, because a channel may add what is written to what it has.
func (q *question) changedValues(state map[string]json.RawMessage) map[string]json.RawMessage {
	var shown map[string]json.RawMessage
	_ = json.Unmarshal(q.Data, &shown) // the provider wrote it
	changed := make(map[string]json.RawMessage)
	for name, value := range state {
		before, err := strictjson.Canonical(shown[name])
		after, invalid := strictjson.Canonical(value)
		if err != nil || invalid != nil || string(before) != string(after) {
			changed[name] = value
		}
	}
	return changed
}

// breakpointQuestion returns the question at a breakpoint: it shows the values of the thread.
func breakpointQuestion(state *threadState) question {
	data, err := json.Marshal(state.Values)
	if err != nil || string(data) == "null" {
		data = json.RawMessage(`{}`)
	}
	return question{Kind: holdKind, Dialect: dialectBreakpoint, Data: data, Digest: digestOf([]byte(state.Checkpoint.ID)), Nodes: state.Next[:1]}
}
