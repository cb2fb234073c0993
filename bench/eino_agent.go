package main

import (
	"context"
	"errors"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
)

func init() {
	schema.RegisterName[*einoQuestion]("fermata_bench_question")
}

// einoAgent is Eino with agents that wait.
type einoAgent struct {
	*einoStore
	task   *agentTask
	runner *adk.Runner
}

var _ waitingRun[taskResult] = (*einoAgent)(nil)

// einoAgentTask is an agent with a tool that needs approval, and depth agents around it.
func einoAgentTask(depth int, text string) (*engine, error) {
	e, err := newEinoAgent(depth, text)
	if err != nil {
		return nil, err
	}
	return waitingEngine(e, 1, e.task.check), nil
}

func newEinoAgent(depth int, text string) (*einoAgent, error) {
	e, err := newAgentTask(depth, text)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	send, err := utils.InferTool(sendName, sendDescription, func(_ context.Context, l letter) (string, error) { return e.send(l) })
	if err != nil {
		return nil, err
	}
	var uses tool.BaseTool = einoHeld{send}
	var outermost adk.Agent
	for level := range depth + 1 {
		if level > 0 {
			uses = adk.NewAgentTool(ctx, outermost)
		}
		outermost, err = adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: levelName(level), Description: taskDescription, Instruction: taskInstruction,
			Model:       einoModel{e, level},
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{uses}}},
		})
		if err != nil {
			return nil, err
		}
	}
	st := newEinoStore()
	return &einoAgent{einoStore: st, task: e, runner: adk.NewRunner(ctx, adk.RunnerConfig{Agent: outermost, CheckPointStore: st})}, nil
}

func (e *einoAgent) start(ctx context.Context, run string) ([]string, error) {
	e.task.reset()
	var ids []string
	events := e.runner.Query(ctx, taskRequest, adk.WithCheckPointID(run))
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			return nil, event.Err
		}
		if event.Action != nil && event.Action.Interrupted != nil {
			for _, interrupt := range event.Action.Interrupted.InterruptContexts {
				ids = append(ids, interrupt.ID)
			}
		}
	}
	return ids, e.task.checkNotSent()
}

func (e *einoAgent) resume(ctx context.Context, run string, answers map[string]any) (taskResult, error) {
	targets := make(map[string]any, len(answers))
	for id := range answers {
		targets[id] = &einoVerdict{Approved: true}
	}
	events, err := e.runner.ResumeWithParams(ctx, run, &adk.ResumeParams{Targets: targets})
	if err != nil {
		return taskResult{}, err
	}
	var last *adk.AgentEvent
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			return taskResult{}, event.Err
		}
		last = event
	}
	if last == nil || last.Output == nil || last.Output.MessageOutput == nil {
		return taskResult{}, errors.New("it does not finish")
	}
	message, err := last.Output.MessageOutput.GetMessage()
	if err != nil {
		return taskResult{}, err
	}
	return e.task.result(message.Content), nil
}

// einoQuestion is what the person sees, einoVerdict the answer.
type einoQuestion struct{ Tool, Args, Call string }

type einoVerdict struct {
	Approved bool
	Reason   string
}

// einoHeld is a tool that asks first, as in Eino's own examples: its interrupt state is the
// arguments.
type einoHeld struct{ tool.InvokableTool }

func (h einoHeld) InvokableRun(ctx context.Context, args string, options ...tool.Option) (string, error) {
	was, _, saved := tool.GetInterruptState[string](ctx)
	if !was {
		return h.ask(ctx, args)
	}
	target, has, verdict := tool.GetResumeContext[*einoVerdict](ctx)
	if !target || !has {
		return h.ask(ctx, saved)
	}
	if !verdict.Approved {
		return "It was rejected: " + verdict.Reason, nil
	}
	return h.InvokableTool.InvokableRun(ctx, saved, options...)
}

func (h einoHeld) ask(ctx context.Context, args string) (string, error) {
	info, err := h.Info(ctx)
	if err != nil {
		return "", err
	}
	return "", tool.StatefulInterrupt(ctx, &einoQuestion{Tool: info.Name, Args: args, Call: compose.GetToolCallID(ctx)}, args)
}

// einoModel is the model of one level.
type einoModel struct {
	task  *agentTask
	level int
}

var _ model.ToolCallingChatModel = einoModel{}

func (m einoModel) Generate(_ context.Context, messages []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	m.task.modelCalls.Add(1)
	meta := &schema.ResponseMeta{Usage: &schema.TokenUsage{
		PromptTokens: tokensRead, CompletionTokens: tokensWritten, TotalTokens: tokensRead + tokensWritten,
	}}
	message := &schema.Message{Role: schema.Assistant, ResponseMeta: meta}
	if last := messages[len(messages)-1]; last.Role == schema.Tool {
		message.Content, meta.FinishReason = m.task.answer(m.level, last.Content), "stop"
	} else {
		c := m.task.calls[m.level]
		message.ToolCalls = []schema.ToolCall{{ID: c.id, Type: "function", Function: schema.FunctionCall{Name: c.tool, Arguments: c.args}}}
		meta.FinishReason = "tool_calls"
	}
	return message, nil
}

func (einoModel) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return nil, errors.New("streaming is not supported here")
}

func (m einoModel) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }
