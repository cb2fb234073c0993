// Package agent builds agents out of models and tools, and runs them so that they can stop for a person at any depth: in a tool of an
// agent that is a tool of another one.
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
//	yes := fermata.Decision{Verb: fermata.VerbApprove, By: "ann"}
//	runner.ResumeWithParams(ctx, "trip-1", &agent.ResumeParams{Targets: map[string]any{id: yes}})
//
// # How it works
//
// A run is one visit of a node of a graph. Agents are ordinary code in it: whatever a model said, a tool returned or an agent
// came to is remembered under its place with [fermata.DoAt]. After an answer the outermost agent is entered again; what is done returns at once
// what it returned before, what waits for something else is not entered, and so the code comes straight to the place where the
// answer is awaited. No model is asked again on the way, and no event is shown again.
//
//	agent:clerk                    ─ Run ─▶ DoAt ─▶ the agent's code
//	├─ model:1                       what the model said, kept
//	├─ tool:search#call_1            its result, kept
//	├─ tool:book#call_2              waits  ◀── the answer goes straight here
//	└─ model:2                       not asked yet
//
// When an agent is done, what it came to takes the place of everything below it. So the size of a run is that of the words in it,
// whatever the depth.
//
// # Agents
//
// [NewChat] lets a model call tools and hand over to other agents. [NewSequential], [NewParallel] and [NewLoop] let several agents
// work; [NewSupervisor] gives work to workers and gets it back; [NewPlanExecute] plans, executes and plans anew; [AsTool] makes any
// agent a tool. [NewFunc] and the [Agent] interface are for your own. All of them can be parts of each other, of a tool, and of a
// node of a graph ([Run]).
//
// # People
//
// A tool asks through one of the wrappers of package tool or by itself; an agent asks with a [fermata.Kind] or with [Interrupt]; a run
// that reaches its [Limits] asks whether to go on. All of it arrives as one [Interrupted] event at the end, saved before anybody
// sees it. [WithCancel] stops a run from outside, so that it can be resumed.
package agent
