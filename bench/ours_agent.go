package main

import (
	"context"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/tool"
)

// oursAgent is Fermata with agents that wait.
type oursAgent struct {
	measuredStore
	task   *agentTask
	runner *agent.Runner
}

var _ waitingRun[taskResult] = (*oursAgent)(nil)

// oursAgentTask is an agent with a tool that needs approval, and depth agents around it.
func oursAgentTask(depth int, text string) (*engine, error) {
	o, err := newOursAgent(depth, text)
	if err != nil {
		return nil, err
	}
	return waitingEngine(o, 1, o.task.check), nil
}

func newOursAgent(depth int, text string) (*oursAgent, error) {
	e, err := newAgentTask(depth, text)
	if err != nil {
		return nil, err
	}
	uses := tool.Approve(tool.New(sendName, sendDescription, func(_ context.Context, l letter) (string, error) { return e.send(l) }))
	var outermost agent.Agent
	for level := range depth + 1 {
		if level > 0 {
			uses = agent.AsTool(outermost)
		}
		outermost, err = agent.NewChat(agent.Chat{
			Name: levelName(level), Description: taskDescription, Instruction: taskInstruction,
			Model: oursModel{e, level}, Tools: []*tool.Tool{uses},
		})
		if err != nil {
			return nil, err
		}
	}
	st := memory.New()
	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: outermost, Store: st})
	return &oursAgent{measuredStore: measuredStore{st}, task: e, runner: runner}, err
}

func (o *oursAgent) start(ctx context.Context, run string) ([]string, error) {
	o.task.reset()
	var ids []string
	for event, err := range o.runner.Query(ctx, taskRequest, agent.WithRun(run)) {
		if err != nil {
			return nil, err
		}
		if waiting, ok := event.Body.(agent.Interrupted); ok {
			for _, interrupt := range waiting.Interrupts {
				ids = append(ids, interrupt.ID)
			}
		}
	}
	return ids, o.task.checkNotSent()
}

func (o *oursAgent) resume(ctx context.Context, run string, answers map[string]any) (taskResult, error) {
	targets := make(map[string]any, len(answers))
	for id := range answers {
		targets[id] = fermata.Yes("")
	}
	finished := false
	var text string
	for event, err := range o.runner.ResumeWithParams(ctx, run, &agent.ResumeParams{Targets: targets}) {
		if err != nil {
			return taskResult{}, err
		}
		if end, ok := event.Body.(agent.Finished); ok {
			finished, text = true, end.Output.Text()
		}
	}
	if !finished {
		return taskResult{}, errors.New("it does not finish")
	}
	return o.task.result(text), nil
}

// oursModel is the model of one level.
type oursModel struct {
	task  *agentTask
	level int
}

var _ agent.Model = oursModel{}

func (m oursModel) Generate(_ context.Context, request *agent.Request) (*agent.Response, error) {
	m.task.modelCalls.Add(1)
	response := &agent.Response{Usage: agent.Usage{InputTokens: tokensRead, OutputTokens: tokensWritten}}
	if last := request.Messages[len(request.Messages)-1]; last.Role == agent.RoleTool {
		response.Message, response.FinishReason = agent.Assistant(m.task.answer(m.level, last.Text)), agent.FinishStop
	} else {
		c := m.task.calls[m.level]
		response.Message, response.FinishReason = agent.Assistant("", agent.ToolCall{ID: c.id, Name: c.tool, Args: c.args}), agent.FinishToolCalls
	}
	return response, nil
}
