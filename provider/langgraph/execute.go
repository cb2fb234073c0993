package langgraph

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/provider"
)

// Codes of failed runs.
const (
	codeInvalidInput = provider.CodeInvalidInput
	codeExpired      = "expired"
	codeAgent        = "agent_failed"
	codeLost         = "thread_lost"
)

// busyDelay is the delay before the next attempt while another client uses the thread.
const busyDelay = 2 * time.Second

// execution is one execution of a run.
type execution struct {
	*provider.Execution
	provider  *Provider
	assistant Assistant
	thread    string
	fresh     bool // nothing was sent for the thread yet
	saved
	version int64
	applied []string
	unused  []fermata.UnusedAnswer
}

// Execute starts the assistant, or delivers the answers to it, and follows it until it ends or
// pauses; see [provider.Provider].
func (p *Provider) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	a, err := p.assistant(e.Run.Graph)
	if err != nil {
		return provider.Result{}, err
	}
	x := &execution{Execution: &e, provider: p, assistant: a, thread: e.Run.Ref}
	if x.saved, x.version, err = load(ctx, e.Run); err != nil {
		return provider.Result{}, err
	}
	result, err := x.execute(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("langgraph: %w", ctx.Err())
		}
		return provider.Result{}, err
	}
	return result, nil
}

func (x *execution) execute(ctx context.Context) (provider.Result, error) {
	if x.thread == "" {
		if err := x.assistant.checkInput(x.Input); err != nil {
			return provider.Result{Outcome: provider.Failed{Code: codeInvalidInput, Message: err.Error(), Final: true}}, nil
		}
		if result, err := x.chooseThread(ctx); err != nil {
			return provider.Result{}, err
		} else if result != nil {
			return *result, nil
		}
		if err := x.Owner.SetRef(ctx, x.thread); err != nil {
			return provider.Result{}, err
		}
	}
	if failed := x.take(); failed != nil {
		return x.end(ctx, *failed)
	}
	switch {
	case x.provider.Adopts(x.Input) && x.isNew():
		return x.adopt(ctx)
	case x.Completed != nil || len(x.applied) == 0 && x.Failed == "" && len(x.Open) > 0:
		return x.repeat(), nil
	case x.Failed != "":
		return x.step(ctx, []string{x.key("retry", x.Failed)}, x.retryBody)
	case len(x.Open) == 0:
		return x.step(ctx, []string{x.key("start")}, x.startBody)
	}
	return x.resume(ctx)
}

// isNew reports whether the thread has given no result yet.
func (x *execution) isNew() bool {
	return x.Completed == nil && x.Failed == "" && len(x.Open) == 0
}

// chooseThread finds the thread that the run adopts, or makes the id of a new one. It returns a
// result if there is none.
func (x *execution) chooseThread(ctx context.Context) (*provider.Result, error) {
	adopted, ok := adoptionOf(x.Input)
	if !ok {
		x.thread, x.fresh = newThreadID(), true
		return nil, nil
	}
	var err error
	if x.thread, err = x.findAdopted(ctx, adopted); err != nil || x.thread != "" {
		return nil, err
	}
	return &provider.Result{Outcome: provider.Failed{Code: codeLost, Message: "the thread is no longer paused", Final: true}}, nil
}

// newThreadID returns a random UUID.
func newThreadID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails: it crashes the program instead
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func (x *execution) key(parts ...string) string {
	return ident.Derive("step", append([]string{x.Run.Account, x.Run.ID}, parts...)...)
}

// take stores the new answers with their questions. It returns a failure if an answer ends the run.
func (x *execution) take() *provider.Failed {
	var failed *provider.Failed
	for _, answer := range x.Answers {
		n := slices.IndexFunc(x.Open, func(q question) bool { return q.ID == answer.InterruptID })
		if n < 0 || x.Open[n].Answer != nil {
			continue
		}
		q := &x.Open[n]
		x.applied = append(x.applied, q.ID)
		switch {
		case answer.Expired:
			failed = &provider.Failed{Code: codeExpired, Message: "the request expired", Final: true}
		case answer.Refusal != nil && q.Kind != fermata.Approval.Name():
			failed = &provider.Failed{Code: refusalCode(answer.Refusal.Verb), Message: answer.Refusal.Err(q.Kind).Error(), Final: true}
		case answer.Refusal != nil:
			q.Answer, _ = json.Marshal(answer.Refusal.Decision) // it has only texts
		case q.Dialect == dialectBreakpoint:
			q.Answer = x.provider.stateUpdate(q, answer)
		default:
			q.Answer = answer.Data
		}
	}
	return failed
}

// stateUpdate returns the values that an answer to a breakpoint writes, with those that record who
// approved it; null if there are none.
func (p *Provider) stateUpdate(q *question, answer provider.Answer) json.RawMessage {
	var state map[string]json.RawMessage
	_ = json.Unmarshal(answer.Data, &state) // it was checked: null or an object
	values := q.changedValues(state)
	for name, text := range map[string]string{p.grantField: granted, p.approverField: answer.By} {
		if name != "" && answer.Rule == "" { // a rule is not a person
			values[name], _ = json.Marshal(text) // a text has a JSON
		}
	}
	if len(values) == 0 {
		return json.RawMessage("null")
	}
	data, err := json.Marshal(values)
	if err != nil { // members of JSON
		return answer.Data
	}
	return data
}

// granted is the value of [Config.GrantField].
const granted = "granted"

func refusalCode(verb fermata.Verb) string {
	if verb == fermata.VerbReturn {
		return "returned"
	}
	return "rejected"
}

// repeat returns the result of the last execution: its answers were applied.
func (x *execution) repeat() provider.Result {
	result := provider.Result{}
	for _, answer := range x.Answers {
		if slices.Contains(x.Applied, answer.InterruptID) {
			result.Applied = append(result.Applied, answer.InterruptID)
		}
	}
	if x.Completed != nil {
		result.Outcome = provider.Completed{Content: x.Completed.Content, Output: x.Completed.Output, FinishReason: x.Completed.Reason}
		return result
	}
	result.Outcome = provider.Waiting{Interrupts: x.open(x.Run.Graph)}
	return result
}

// end saves the state and returns a result with the applied answers.
func (x *execution) end(ctx context.Context, outcome provider.Outcome) (provider.Result, error) {
	x.Applied = x.applied
	if err := x.save(ctx, x.Run, x.version); err != nil {
		return provider.Result{}, err
	}
	return provider.Result{Applied: x.applied, Outcome: outcome}, nil
}

// resume delivers the answers of the interrupts that are completely answered, and waits for the
// others.
func (x *execution) resume(ctx context.Context) (provider.Result, error) {
	groups := x.groups()
	if len(groups) == 0 {
		return x.end(ctx, provider.Waiting{Interrupts: x.open(x.Run.Graph)})
	}
	var keys []string
	for _, g := range groups {
		keys = append(keys, g.key(x.Run))
	}
	return x.step(ctx, keys, x.resumeBody)
}

// errChanged reports that another client has changed the thread since the questions were asked.
var errChanged = errors.New("langgraph: the thread was changed by another client")

// step makes one step of the thread. That is exactly one run of LangGraph: the run that an earlier
// execution started for it, or a new one.
func (x *execution) step(ctx context.Context, keys []string, body func(context.Context) (map[string]any, error)) (provider.Result, error) {
	c := &x.provider.client
	t, found, err := x.findStep(ctx, keys)
	if err == nil && !found {
		var content map[string]any
		if content, err = body(ctx); err == nil {
			content["metadata"] = object{"fermata_keys": keys}
			t, err = c.start(ctx, x.thread, content, x.report)
			found = t.run != ""
		}
	}
	switch {
	case errors.Is(err, errChanged):
		return x.changed(ctx)
	case isBusy(err):
		return x.busy(ctx)
	case hasStatus(err, http.StatusNotFound) && !found:
		return x.missing(ctx)
	case err != nil:
		return provider.Result{}, err
	}
	return x.finish(ctx, keys, t)
}

// findStep returns the transcript of the run that makes a step, if there is one.
func (x *execution) findStep(ctx context.Context, keys []string) (t transcript, found bool, err error) {
	c := &x.provider.client
	if x.fresh {
		return t, false, c.createThread(ctx, x.thread)
	}
	runs, err := c.runs(ctx, x.thread)
	if hasStatus(err, http.StatusNotFound) && len(x.Open) == 0 && x.Failed == "" && !x.Adopted {
		return t, false, c.createThread(ctx, x.thread) // it was not created before the crash
	}
	if err != nil {
		return t, false, err
	}
	for _, run := range runs {
		if slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(run.Metadata.Keys, key) }) {
			t, err = c.join(ctx, x.thread, run.ID, x.report)
			x.restrict(run.Metadata.Keys)
			return t, true, err
		}
	}
	return t, false, nil
}

// restrict forgets, for this step, the answers that a found run did not deliver: they came after
// it was started. The executor sends them again.
func (x *execution) restrict(keys []string) {
	for _, g := range x.groups() {
		if slices.Contains(keys, g.key(x.Run)) {
			continue
		}
		for _, q := range g.questions {
			x.applied = slices.DeleteFunc(x.applied, func(id string) bool { return id == q.ID })
			n := slices.IndexFunc(x.Open, func(o question) bool { return o.ID == q.ID })
			x.Open[n].Answer = nil
		}
	}
}

// common returns the part of a request that is the same for each run.
func (x *execution) common() map[string]any {
	configurable := object{"__pregel_strict_resume": true} // newer servers reject stale answers then
	for name, value := range x.assistant.Configurable {
		configurable[name] = value
	}
	return object{
		"assistant_id": x.assistant.ID, "multitask_strategy": "reject", "on_disconnect": "continue", "durability": "sync",
		"stream_mode": []string{"updates", "values", "messages-tuple"}, "stream_resumable": true, "config": object{"configurable": configurable},
	}
}

func (x *execution) startBody(context.Context) (map[string]any, error) {
	body := x.common()
	body["input"] = x.Input
	return body, nil
}

// retryBody continues from the last checkpoint. If the thread has none, it starts again.
func (x *execution) retryBody(ctx context.Context) (map[string]any, error) {
	state, err := x.provider.client.state(ctx, x.thread)
	if err != nil {
		return nil, err
	}
	body := x.common()
	if body["input"] = nil; state.Checkpoint.ID == "" && !x.Adopted {
		body["input"] = x.Input
	}
	return body, nil
}

// resumeBody delivers answers by interrupt id, after it has checked that they belong to what people
// saw.
func (x *execution) resumeBody(ctx context.Context) (map[string]any, error) {
	groups := x.groups()
	state, err := x.provider.client.state(ctx, x.thread)
	if err != nil {
		return nil, err
	}
	body := x.common()
	if groups[0].questions[0].Dialect == dialectBreakpoint {
		body["input"] = nil
		return body, x.passBreakpoint(ctx, state, groups[0].questions[0])
	}
	if !x.unchanged(&state, groups) {
		return nil, errChanged
	}
	values := make(object, len(groups))
	for _, g := range groups {
		value, err := g.resumeValue()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		values[g.interrupt] = json.RawMessage(strings.ReplaceAll(string(text), hiddenThread, x.thread))
	}
	body["command"] = object{"resume": values}
	return body, nil
}

// unchanged reports whether the thread still asks what people have answered.
func (x *execution) unchanged(state *threadState, groups []group) bool {
	open := x.scrubAll(state.interrupts())
	for _, g := range groups {
		n := slices.IndexFunc(open, func(i rawInterrupt) bool { return i.ID == g.interrupt })
		if n < 0 {
			if state.Checkpoint.ID != x.Checkpoint || len(state.Tasks) == 0 {
				return false
			}
			continue // some servers do not list interrupts in the state
		}
		if digestOf(open[n].Value) != g.questions[0].Digest {
			return false
		}
	}
	return true
}

// passBreakpoint changes the values of the thread if the answer has some. A repeated call finds the
// change of the first.
func (x *execution) passBreakpoint(ctx context.Context, state threadState, q question) error {
	changed := state.Metadata.Source == "update" && state.Parent != nil && state.Parent.ID == x.Checkpoint
	switch {
	case string(q.Answer) == "null" && state.Checkpoint.ID == x.Checkpoint:
		return nil
	case string(q.Answer) == "null" || state.Checkpoint.ID != x.Checkpoint && !changed:
		return errChanged
	case changed:
		return nil
	}
	return x.provider.client.updateState(ctx, x.thread, q.Answer, "")
}

// report passes on the progress of the thread.
func (x *execution) report(finished []string, token string) {
	at := fermata.Address{{Type: fermata.SegmentRunnable, ID: x.Run.Graph}}
	for _, name := range finished {
		x.ReportProgress(provider.Step{Address: append(at[:1:1], fermata.Segment{Type: fermata.SegmentNode, ID: name}).String(), State: provider.StepFinished})
	}
	if token != "" {
		x.ReportProgress(provider.Token{Address: at.String(), Text: token})
	}
}

// finish converts the end of a step to a result.
func (x *execution) finish(ctx context.Context, keys []string, t transcript) (provider.Result, error) {
	state, err := x.provider.client.state(ctx, x.thread)
	if err != nil && !(t.failure != nil && hasStatus(err, http.StatusNotFound)) {
		return provider.Result{}, err
	}
	if t.failure != nil && strings.Contains(t.failure.Error+t.failure.Message, "UnknownInterruptError") {
		return x.changed(ctx) // the strict resume mode of newer servers
	}
	if t.failure != nil {
		return x.failed(ctx, t)
	}
	x.Failed = ""
	raised := t.interrupts
	if !t.complete {
		raised, t.values = x.remaining(&state), state.Values
	}
	x.settle(keys)
	if t.tooMany {
		return x.tooMany(ctx)
	}
	if len(raised) > 0 {
		if !x.raise(x.Run, &state, x.scrubAll(raised)) {
			return x.tooMany(ctx)
		}
		return x.end(ctx, provider.Waiting{Interrupts: x.open(x.Run.Graph), Unused: x.unused})
	}
	if len(state.Next) > 0 {
		q := breakpointQuestion(&state)
		q.Data = x.scrub(q.Data)
		x.Answered = count(x.Answered, "")
		q.ID = questionID(x.Run, q, x.Answered[""])
		x.Open, x.Checkpoint = []question{q}, state.Checkpoint.ID
		return x.end(ctx, provider.Waiting{Interrupts: x.open(x.Run.Graph), Unused: x.unused})
	}
	return x.completed(ctx, t.values, "")
}

func count(counts map[string]int, key string) map[string]int {
	if counts == nil {
		counts = make(map[string]int)
	}
	counts[key]++
	return counts
}

// settle removes the questions whose answers were delivered.
func (x *execution) settle(keys []string) {
	for _, g := range x.groups() {
		if !slices.Contains(keys, g.key(x.Run)) {
			continue
		}
		if g.interrupt != "" {
			x.Answered = count(x.Answered, g.interrupt)
		}
		x.Open = slices.DeleteFunc(x.Open, func(q question) bool { return q.Interrupt == g.interrupt })
	}
}

// remaining returns the open interrupts of a run whose events are gone. The state still lists
// answered ones while others of the same step are open. If nothing else is left, the graph asks the
// same again.
func (x *execution) remaining(state *threadState) []rawInterrupt {
	listed := x.scrubAll(state.interrupts())
	left := slices.Clone(listed)
	for _, g := range x.groups() {
		left = slices.DeleteFunc(left, func(i rawInterrupt) bool { return i.ID == g.interrupt && digestOf(i.Value) == g.questions[0].Digest })
	}
	if len(left) == 0 {
		return listed
	}
	return left
}

func (x *execution) completed(ctx context.Context, values json.RawMessage, reason string) (provider.Result, error) {
	if x.Adopted {
		if err := x.mark(ctx, markNone); err != nil {
			return provider.Result{}, err
		}
	}
	x.Open = nil
	values = x.scrub(values)
	x.Completed = &completed{Content: lastMessage(values), Output: values, Reason: reason}
	return x.end(ctx, provider.Completed{Content: x.Completed.Content, Output: values, FinishReason: reason})
}

// lastMessage returns the text of the last message of a state with messages.
func lastMessage(values json.RawMessage) string {
	var state struct {
		Messages json.RawMessage `json:"messages"`
	}
	var last struct {
		Content json.RawMessage `json:"content"`
	}
	var text string
	if json.Unmarshal(values, &state) == nil && json.Unmarshal(lastElement(state.Messages), &last) == nil {
		_ = json.Unmarshal(last.Content, &text)
	}
	return text
}

// failed ends the execution after an error of the graph. A retry continues from the last
// checkpoint.
func (x *execution) failed(ctx context.Context, t transcript) (provider.Result, error) {
	x.Failed, x.Open = t.run, nil
	detail := string(x.scrub([]byte(strings.TrimSpace(t.failure.Error + ": " + t.failure.Message))))
	return x.end(ctx, provider.Failed{Code: codeAgent, Message: "a node of the agent failed", Detail: detail})
}

// tooMany ends the run: people could not keep up with what it asks.
func (x *execution) tooMany(ctx context.Context) (provider.Result, error) {
	x.Open = nil
	return x.end(ctx, provider.Failed{Code: codeAgent, Message: fmt.Sprintf("the agent asks more than %d questions at the same time", maxQuestions), Final: true})
}

// busy handles a thread that another client uses. LangGraph's JavaScript server reports a missing
// thread in the same way.
func (x *execution) busy(ctx context.Context) (provider.Result, error) {
	if _, err := x.provider.client.thread(ctx, x.thread); hasStatus(err, http.StatusNotFound) {
		return x.missing(ctx)
	}
	return provider.Result{}, &fermata.RetryError{Err: errors.New("langgraph: another run of the thread is in progress"), After: busyDelay}
}

// missing handles a server that does not know the thread or the assistant.
func (x *execution) missing(ctx context.Context) (provider.Result, error) {
	_, err := x.provider.client.thread(ctx, x.thread)
	if err == nil {
		return provider.Result{}, fmt.Errorf("langgraph: the server does not know the assistant: %w", provider.ErrPark)
	}
	if !hasStatus(err, http.StatusNotFound) {
		return provider.Result{}, err
	}
	x.Open = nil
	return x.end(ctx, provider.Failed{Code: codeLost, Message: "the server no longer has the thread of the run", Final: true})
}

// changed handles a thread that another client has continued: the answers are not used, and people
// are asked what the thread asks now.
func (x *execution) changed(ctx context.Context) (provider.Result, error) {
	c := &x.provider.client
	t, err := c.thread(ctx, x.thread)
	if err != nil {
		return provider.Result{}, err
	}
	if t.Status == "busy" {
		return x.busy(ctx)
	}
	state, err := c.state(ctx, x.thread)
	if err != nil {
		return provider.Result{}, err
	}
	for n := range x.Open {
		if x.Open[n].Answer != nil {
			x.Open[n].Answer = nil
			x.unused = append(x.unused, fermata.UnusedAnswer{ID: x.Open[n].ID, Reason: "the agent was continued or changed by another client since it asked"})
			x.Answered = count(x.Answered, x.Open[n].Interrupt)
		}
	}
	return x.pause(ctx, &state, state.interrupts())
}

// hiddenThread replaces the thread id in all data that people see.
const hiddenThread = "(langgraph-thread)"

// scrub removes the thread id from data of the agent.
func (x *execution) scrub(data []byte) []byte {
	return []byte(strings.ReplaceAll(string(data), x.thread, hiddenThread))
}

func (x *execution) scrubAll(list []rawInterrupt) []rawInterrupt {
	for i := range list {
		list[i].Value = x.scrub(list[i].Value)
		list[i].ResponseSchema = x.scrub(list[i].ResponseSchema)
	}
	return list
}
