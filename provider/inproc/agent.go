package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// Agent registers an agent. Store, Account and Ledger of the config are set for each run. The input
// is a query or a conversation; the output is the messages that the agent added.
func Agent(config agent.RunnerConfig, options ...AgentOption) Graph {
	g := &agentGraph{config: config}
	for _, option := range options {
		option(g)
	}
	return g
}

// AgentOption configures [Agent].
type AgentOption func(*agentGraph)

// Explain lets a model reply to clarification requests about the agent's interrupts. It sees the
// initial conversation of the run and the question, and has no tools. Without it only the requester
// can reply.
func Explain(model agent.Model) AgentOption { return func(g *agentGraph) { g.explainer = model } }

// OnFailure sets a function that receives the error of a failed execution: see [FailureFunc].
func OnFailure(failed FailureFunc) AgentOption { return func(g *agentGraph) { g.onFailure = failed } }

type agentGraph struct {
	config    agent.RunnerConfig
	explainer agent.Model
	onFailure FailureFunc
}

// agentInput is the input of an agent.
type agentInput struct {
	Query    string          `json:"query,omitempty" jsonschema:"what the user says"`
	Messages []agent.Message `json:"messages,omitempty" jsonschema:"a conversation to go on with, before the query"`
}

// agentExample is an input of an agent.
const agentExample = `{"query": "…"}`

func (g *agentGraph) describe() (provider.Graph, error) {
	if g.config.Agent == nil {
		return provider.Graph{}, errors.New("inproc: Agent: the config has no agent")
	}
	return provider.Graph{Name: g.config.Agent.Name(), Description: g.config.Agent.Description(), Input: schema.TextFor[agentInput]()}, nil
}

func (g *agentGraph) runner(run provider.Run, ledger fermata.Ledger, policy fermata.Policy) (*agent.Runner, error) {
	config := g.config
	config.Store, config.Account, config.Ledger, config.Policy = run.State, run.Account, ledger, policy
	return agent.NewRunner(config)
}

func (g *agentGraph) execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	runner, err := g.runner(e.Run, e.Owner.Ledger(), policyOf(g.config.Policy, e))
	if err != nil {
		return provider.Result{}, err
	}
	end, err := g.advance(ctx, runner, e)
	g.onFailure.call(ctx, e, err)
	return toResult(e, err, func() (provider.Completed, error) {
		output, err := roundtrip.Marshal(end.Output)
		usage := &fermata.Usage{InputTokens: end.Usage.InputTokens, OutputTokens: end.Usage.OutputTokens}
		return provider.Completed{Content: end.Output.Text(), Output: output, Usage: usage, FinishReason: "end"}, err
	})
}

// advance starts or resumes the run.
func (g *agentGraph) advance(ctx context.Context, runner *agent.Runner, e provider.Execution) (agent.Finished, error) {
	loaded, err := runner.Load(ctx, e.Run.ID, agent.TakeOver()) // the executor's fence permits it
	if errors.Is(err, graph.ErrUnknownRun) {
		return g.start(ctx, runner, e)
	}
	if err != nil {
		return agent.Finished{}, err
	}
	saved, err := loaded.Inspect()
	if err != nil {
		return agent.Finished{}, err
	}
	// the process that finished it died before it could report the result
	if saved.Status == graph.StatusFinished {
		return agent.Finished{Output: saved.Output, Usage: saved.Spent.Usage}, nil
	}
	answers, err := openAnswers(e.Answers, saved.Interrupts)
	if err != nil {
		return agent.Finished{}, err
	}
	return resumeWith(answers, func(answers map[string]any) (agent.Finished, error) {
		return lastEvent(e, loaded.ResumeWithParams(ctx, &agent.ResumeParams{Targets: answers}))
	})
}

// start starts the run with its input.
func (g *agentGraph) start(ctx context.Context, runner *agent.Runner, e provider.Execution) (agent.Finished, error) {
	messages, err := decodeMessages(e.Input)
	if err != nil {
		return agent.Finished{}, err
	}
	return lastEvent(e, runner.Run(ctx, messages, agent.WithRun(e.Run.ID)))
}

// decodeMessages decodes the input of a run: the conversation, with the query at its end.
func decodeMessages(text json.RawMessage) ([]agent.Message, error) {
	var input agentInput
	if err := strictjson.Decode(text, &input); err != nil {
		return nil, &inputError{agentExample, err}
	}
	if input.Query != "" {
		input.Messages = append(input.Messages, agent.User(input.Query))
	}
	if len(input.Messages) == 0 {
		return nil, &inputError{agentExample, errors.New("the conversation has no message")}
	}
	return input.Messages, nil
}

func (g *agentGraph) checkInput(input json.RawMessage) error {
	_, err := decodeMessages(input)
	return err
}

// lastEvent returns the final event. All events are reported as progress.
func lastEvent(e provider.Execution, events iter.Seq2[*agent.Event, error]) (end agent.Finished, err error) {
	for event, failure := range events {
		if failure != nil {
			return end, failure
		}
		reportEvent(e, event)
		switch body := event.Body.(type) {
		case agent.Finished:
			end = body
		case agent.Interrupted:
			err = &fermata.InterruptError{Info: body.Info, BadAnswers: body.BadAnswers}
		case agent.Token, agent.MessageAdded, agent.ToolOutput, agent.ToolDone, agent.Transferred, agent.Exit:
		}
	}
	return end, err
}

func (g *agentGraph) answerChecks(ctx context.Context, run provider.Run) (func(string, any) (json.RawMessage, error), error) {
	runner, err := g.runner(run, nil, nil)
	if err != nil {
		return nil, err
	}
	loaded, err := runner.Load(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	return loaded.CheckAnswer, nil
}
