package inproc

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/provider"
)

// instruction is the system prompt for a clarification. A person decides based on the reply, so the
// model must not persuade.
const instruction = `You are the agent whose conversation this is. You have stopped, because a person has to decide on something that you want to do or to know.
Before they decide they have a question. Answer it from what you know, briefly and in plain text. Say so if you do not know.
Do not try to persuade them, and promise nothing: whatever you say, they decide.`

// explain asks a model for a reply, based on the agent's input and its current question.
func (g *agentGraph) explain(ctx context.Context, run provider.Run, clarification provider.Clarification) (text string, err error) {
	if g.explainer == nil {
		return "", nil
	}
	defer recovery.Recover(&err)
	runner, err := g.runner(run, nil, nil)
	if err != nil {
		return "", err
	}
	saved, err := runner.Inspect(ctx, run.ID)
	if err != nil {
		return "", err
	}
	messages := append([]agent.Message{agent.System(instruction)}, saved.Messages...)
	messages = append(messages,
		agent.Assistant(fmt.Sprintf("I have stopped, and asked this (%s):\n%s", clarification.Kind, clarification.Data)),
		agent.User("The person who decides wants to know: "+clarification.Text))
	response, err := g.explainer.Generate(ctx, &agent.Request{Messages: messages})
	if err != nil {
		return "", err
	}
	return response.Message.Text, nil
}
