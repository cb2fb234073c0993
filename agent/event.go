package agent

import (
	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

// Event is an event of a run. Body is its content.
type Event struct {
	// Run is the id of the run.
	Run string
	// Agent is the name of the agent where it happened; Path has the agents and tool calls that
	// lead there.
	Agent string
	Path  fermata.Address
	Body  Body
}

// Body is one of [Token], [MessageAdded], [ToolOutput], [ToolDone], [Transferred], [Exit],
// [Interrupted] and [Finished].
//
//sumtype:decl
type Body interface{ body() }

// Token is a part of a model's message. Tokens are yielded only if the run streams; a
// [MessageAdded] with the complete message follows, unless the model fails.
type Token struct{ Text string }

// MessageAdded reports that an agent added a message to the conversation. It is already saved.
type MessageAdded struct {
	Message Message
	Usage   Usage
	// Model and FinishReason are reported by the model's service.
	Model        string
	FinishReason FinishReason
}

// ToolOutput is a part of a streaming tool's result.
type ToolOutput struct {
	Call ToolCall
	Text string
}

// ToolDone reports the end of a tool call. It is already saved.
type ToolDone struct {
	Call   ToolCall
	Result tool.Result
}

// Transferred reports that another agent takes over.
type Transferred struct{ To string }

// Exit, yielded by an agent, ends the loop that contains it.
type Exit struct{}

// Interrupted reports that the run waits. The run is already saved. It is the last event and is
// yielded once.
type Interrupted struct {
	// Interrupts are the places that asked, in a simplified view: addresses contain only agents and
	// tool calls, and Parent leads through these.
	Interrupts []*fermata.InterruptCtx
	// Info is the same with full addresses.
	Info *fermata.InterruptInfo
	// BadAnswers are answers that could not be used; their interrupts are still open.
	BadAnswers []*fermata.AnswerError

	signal error // set until it has reached the runner
}

// Finished reports that the run has ended. It is the last event.
type Finished struct {
	Output *Output
	// Usage is the usage of all models of the run, from its start and across interrupts.
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
