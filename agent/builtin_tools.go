package agent

// The names of the tools that agents of this package offer to models. A tool of the program cannot
// have the name of one that its agent offers.
const (
	// ToolTransfer hands the conversation over to another agent: see [Chat].Agents. Its argument is
	// agent_name.
	ToolTransfer = "transfer_to_agent"
	// ToolExit ends the loop around the agent: see [ExitTool]. Its argument is reason.
	ToolExit = "exit_loop"
	// ToolPlan sets the steps of a plan, and ToolRespond gives the final answer: see
	// [NewPlanExecute]. Their arguments are steps and response.
	ToolPlan    = "plan"
	ToolRespond = "respond"
)
