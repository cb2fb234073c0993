// Package agent builds agents from models and tools, and runs them so that they can stop for a
// person at any depth, for example in a tool of an agent that is itself a tool of another agent.
//
//	clerk, err := agent.NewChat(agent.Chat{
//		Name:        "clerk",
//		Instruction: "You book train tickets.",
//		Model:       model, // agent/openai, agent/anthropic, agent/script, or your own
//		Tools:       []*tool.Tool{search, tool.Approve(book)},
//	})
//	runner, err := agent.NewRunner(agent.RunnerConfig{Agent: clerk, Store: file})
//
//	for event, err := range runner.Query(ctx, "To Paris tomorrow, please.", agent.WithRun("trip-1")) {
//		switch body := event.Body.(type) { // err checked before
//		case agent.MessageAdded:
//			fmt.Println(body.Message.Text)
//		case agent.Interrupted: // saved; the process may end now
//			ask(body.Interrupts)
//		}
//	}
//
//	// A minute or a month later, in this process or another one:
//	runner.Resume(ctx, "trip-1", agent.Answer(id, fermata.Yes("ann")))
//
// # How it works
//
// A run is one activation of a graph node. Agents are ordinary code in it: model answers, tool
// results and agent outputs are recorded under their address with [fermata.DoAt]. After an answer
// the outermost agent is entered again. Finished work returns its recorded result, and work that
// waits for something else is not entered, so the code reaches the answered interrupt directly. No
// model call is repeated, and no event is shown again.
//
//	agent:clerk                    ─ Run ─▶ DoAt ─▶ the agent's code
//	├─ model:1                       the model's answer, recorded
//	├─ tool:search#call_1            its result, recorded
//	├─ tool:book#call_2              waits  ◀── the answer is delivered here
//	└─ model:2                       not called yet
//
// When an agent is done, its output replaces everything below it. The size of a run is therefore
// the size of its messages, regardless of the depth.
//
// # Agents
//
// [NewChat] lets a model call tools and hand over to other agents. [NewSequential], [NewParallel]
// and [NewLoop] run several agents; [NewSupervisor] delegates to workers; [NewPlanExecute] plans,
// executes and replans; [AsTool] converts any agent to a tool. Use [NewFunc] and the [Agent]
// interface for your own agents. All of them can contain each other, and can be used in a tool and
// in a node of a graph ([Run]).
//
// # People
//
// A tool asks a person through one of the wrappers of package tool or directly; an agent asks with
// a [fermata.Kind] or with [Interrupt]; a run that reaches its [Limits] asks whether to continue.
// All interrupts are reported in one [Interrupted] event at the end, after the run is saved.
// [WithCancel] stops a run from outside, so that it can be resumed.
package agent
