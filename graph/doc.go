// Package graph runs typed state graphs that can stop for a person and go on exactly where they stopped.
//
//	g := graph.New[State]("content-review")
//	g.Node("draft", draft)
//	g.Node("human_review", humanReview) // asks with fermata.Kind.Ask
//	g.Node("finalize", finalize)
//	g.Edge(graph.Start, "draft")
//	g.Edge("draft", "human_review")
//	g.Branch("human_review", routeAfterReview, "draft", "finalize", graph.End)
//	g.Edge("finalize", graph.End)
//	flow, err := g.Compile()
//
//	_, err = flow.Run(ctx, State{Topic: "fermatas"}, graph.WithStore(st), graph.WithRun("demo-1"))
//	if info, waits := fermata.ExtractInterruptInfo(err); waits {
//		question := info.Interrupts[0]
//		state, err = flow.Resume(ctx, "demo-1", graph.WithStore(st), graph.Answer(question.ID, verdict))
//	}
//
// # Steps
//
// Nodes that are ready run together as one step. A step is over when each of its nodes has finished, waits or has failed.
// Then the results are merged into the state, field by field, and saved. A node that something led to is ready when
// nothing under way can still lead to it, so branches that come together are joined, and branches that do not depend on a
// waiting node go on. The next round of a loop begins when this one is over, and what comes after a loop when it is left.
//
// # Saving
//
// A run is saved after every step, and always before a question is shown; if saving fails nobody is asked. Only what a step
// changed is written, every value once, at any depth ([SaveOnWait] writes less often). What is done is not done again: not
// a finished node, not the result of [fermata.Do], not the steps of a graph in a node, however many of them wait.
//
// # Answers
//
// Answering one of several questions enters only the node that asked it. The others stay parked, with the same ids. An
// answer that is unknown, late or of the wrong type is an error, and nothing runs.
package graph
