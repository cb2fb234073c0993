package agent

import (
	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

// Event is something that happened in a run. What happened is its Body.
type Event struct {
	// Run is the id of the run.
	Run string
	// Agent is the name of the agent it happened in, Path the agents and tool calls that lead there.
	Agent string
	Path  fermata.Address
	Body  Body
}

// Body is one of [Token], [MessageAdded], [ToolOutput], [ToolDone], [Transferred], [Exit], [Interrupted] and
// [Finished].
//
//sumtype:decl
type Body interface{ body() }

// Token is a piece of what a model is saying. Tokens come only if the run streams; a [MessageAdded] with the whole message follows,
// unless the model fails.
type Token struct{ Text string }

// MessageAdded is a message that an agent added to the conversation. It is saved by then.
type MessageAdded struct {
	Message Message
	Usage   Usage
	// Model and Finish are what the model's service reported.
	Model        string
	FinishReason FinishReason
}

// ToolOutput is a piece of what a streaming tool returns.
type ToolOutput struct {
	Call ToolCall
	Text string
}

// ToolDone is the end of a tool call. It is saved by then.
type ToolDone struct {
	Call   ToolCall
	Result tool.Result
}

// Transferred says that another agent takes over.
type Transferred struct{ To string }

// Exit, yielded by an agent, ends the loop that it is part of.
type Exit struct{}

// Interrupted says that the run waits. Everything is saved by then. It is the last event, and comes once.
type Interrupted struct {
	// Interrupts are the places that asked, in the view of people: addresses have only agents and tool calls, and Parent
	// leads through these.
	Interrupts []*fermata.InterruptCtx
	// Info is the same with full addresses.
	Info *fermata.InterruptInfo
	// BadAnswers are answers that were given but could not be used; those questions are still open.
	BadAnswers []*fermata.AnswerError

	signal error // set while it is on its way to the root
}

// Finished says that the run is over. It is the last event.
type Finished struct {
	Output *Output
	// Usage is what all models of the run used, from its start and across its interrupts.
	Usage Usage
}

func (Token) body()        {}
func (MessageAdded) body() {}
func (ToolOutput) body()   {}
func (ToolDone) body()     {}
func (Transferred) body()  {}
func (Exit) body()         {}
func (Interrupted) body()  {}
func (Finished) body()     {}
