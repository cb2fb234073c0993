package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// PlanExecute configures an agent that makes a plan, executes its first step, and replans with the
// result, until nothing is left to do.
type PlanExecute struct {
	Name, Description string
	// Planner makes the plan.
	Planner Model
	// Replanner makes a new plan after each step, or the final answer. The default is the Planner.
	Replanner Model
	// Executor executes one step. It sees the task, the plan and the results so far.
	Executor Agent
	// MaxSteps is the maximum number of executed steps before the agent fails with a
	// [*MaxTurnsError]. The default is 20.
	MaxSteps int
}

// NewPlanExecute creates a plan-execute-replan agent.
func NewPlanExecute(p PlanExecute) (Agent, error) {
	var errs []error
	if p.Planner == nil {
		errs = append(errs, fmt.Errorf("agent: %s has no planner", p.Name))
	}
	if p.Executor == nil {
		errs = append(errs, fmt.Errorf("agent: %s has no executor", p.Name))
	}
	if p.MaxSteps < 0 {
		errs = append(errs, fmt.Errorf("agent: %s: MaxSteps is %d", p.Name, p.MaxSteps))
	}
	if p.MaxSteps == 0 {
		p.MaxSteps = defaultTurns
	}
	if p.Replanner == nil {
		p.Replanner = p.Planner
	}
	b, err := newBuiltin(p.Name, p.Description, p.perform)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return b, nil
}

var (
	planSpec = ToolSpec{ToolPlan, "Sets the steps that are still to be done, in order.",
		json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"string"},"minItems":1}},"required":["steps"],"additionalProperties":false}`)}
	respondSpec = ToolSpec{ToolRespond, "Gives the final answer, when nothing is left to be done.",
		json.RawMessage(`{"type":"object","properties":{"response":{"type":"string"}},"required":["response"],"additionalProperties":false}`)}
)

// planRun is the execution of a plan-execute agent. Like a conversation it starts from the
// beginning whenever the agent is entered.
type planRun struct {
	*PlanExecute
	scope *agentScope
	input *Input
	steps []string
	done  []doneStep
}

type doneStep struct{ step, result string }

func (p *PlanExecute) perform(ctx context.Context, input *Input) (*Output, error) {
	if err := checkAgentsPresent(activation.FromContext(ctx), p.MaxSteps, p.Executor); err != nil {
		return nil, err
	}
	w := &planRun{PlanExecute: p, scope: scopeOf(ctx), input: &Input{Messages: continued(p.Name, input.Messages)}}
	output := new(Output)
	answer, err := w.callPlanner(ctx, 0, p.Planner)
	for step := 1; err == nil && answer == ""; step++ {
		if step > p.MaxSteps {
			return nil, &MaxTurnsError{Agent: p.Name, Max: p.MaxSteps}
		}
		var message *Output
		if message, err = RunNth(ctx, step, p.Executor, w.executorInput()); err != nil {
			return nil, err
		}
		output.Messages = append(output.Messages, message.Messages...)
		w.done = append(w.done, doneStep{w.steps[0], message.Text()})
		answer, err = w.callPlanner(ctx, step, p.Replanner)
	}
	if err != nil {
		return nil, err
	}
	output.Messages = append(output.Messages, Message{Role: RoleAssistant, Agent: p.Name, Text: answer})
	return output, nil
}

// callPlanner asks a model for the plan or, after some steps, for a new plan or the answer. Plain
// text is also an answer.
func (w *planRun) callPlanner(ctx context.Context, number int, m Model) (answer string, err error) {
	message, err := w.scope.generate(ctx, strconv.Itoa(number), m, func(context.Context) (*Request, error) {
		r := &Request{Messages: w.plannerMessages(), Tools: []ToolSpec{planSpec, respondSpec}}
		if number == 0 {
			r.Tools, r.MustCall = []ToolSpec{planSpec}, ToolPlan
		}
		return r, nil
	}, func(m *Message) error {
		_, _, err := w.parsePlan(number, m)
		return err // the next resume calls it again
	})
	if err != nil {
		return "", err
	}
	answer, steps, err := w.parsePlan(number, &message)
	w.steps = steps
	return answer, err
}

// parsePlan returns the answer or the steps in a planner's message.
func (w *planRun) parsePlan(number int, message *Message) (answer string, steps []string, err error) {
	if len(message.ToolCalls) == 0 {
		if number == 0 || message.Text == "" {
			return "", nil, fmt.Errorf("agent: %s: the planner returned no plan", w.Name)
		}
		return message.Text, nil, nil
	}
	var args struct {
		Steps    []string `json:"steps"`
		Response string   `json:"response"`
	}
	call := message.ToolCalls[0]
	if call.CutOff {
		return "", nil, fmt.Errorf("agent: %s: the planner's answer was cut off", w.Name)
	}
	if err := strictjson.Decode([]byte(call.Args), &args); err != nil {
		return "", nil, fmt.Errorf("agent: %s: the planner called %s with invalid arguments: %w", w.Name, call.Name, err)
	}
	switch {
	case call.Name == ToolRespond && args.Response != "":
		return args.Response, nil, nil
	case call.Name == ToolPlan && len(args.Steps) > 0:
		return "", args.Steps, nil
	}
	return "", nil, fmt.Errorf("agent: %s: the planner called %s(%s)", w.Name, call.Name, call.Args)
}

const (
	planInstruction   = "Break the user's task down into a short list of steps, each of which an executor with tools can do on its own. Call plan with them."
	replanInstruction = "Look at the task and at what was done. If nothing is left to do, call respond with the answer for the user. Otherwise call plan with the steps that remain, changed if what was found asks for it; do not repeat what is done."
)

// plannerMessages returns the messages for a planner.
func (w *planRun) plannerMessages() []Message {
	if len(w.done) == 0 {
		return slices.Concat([]Message{System(planInstruction)}, w.input.Messages)
	}
	return slices.Concat([]Message{System(replanInstruction)}, w.input.Messages, []Message{User(w.report(w.steps[1:]))})
}

// executorInput returns the input for the executor.
func (w *planRun) executorInput() *Input {
	text := w.report(w.steps) + "Do this step now, and only this one: " + w.steps[0]
	return &Input{Messages: slices.Concat(w.input.Messages, []Message{User(text)})}
}

// report lists the finished and the planned steps.
func (w *planRun) report(planned []string) string {
	var b strings.Builder
	for i, d := range w.done {
		fmt.Fprintf(&b, "Step %d, done: %s\nResult: %s\n", i+1, d.step, d.result)
	}
	for i, step := range planned {
		fmt.Fprintf(&b, "Step %d, planned: %s\n", len(w.done)+i+1, step)
	}
	return b.String()
}
