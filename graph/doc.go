// Package graph runs typed state graphs that can stop for a person and resume exactly where they
// stopped.
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
//		interrupt := info.Interrupts[0]
//		state, err = flow.Resume(ctx, "demo-1", graph.WithStore(st), graph.Answer(interrupt.ID, verdict))
//	}
//
// # Steps
//
// Nodes that are ready run together as one step. A step is over when each of its nodes has
// finished, waits or has failed. Then the results are merged into the state, field by field, and
// saved. A node that has been reached is ready when no active node can still lead to it. So
// parallel branches are joined, and branches that do not depend on a waiting node continue. The
// next iteration of a loop begins when the current one is over; nodes after a loop run when the
// loop has ended.
//
// # Saving
//
// A run is saved after every step, and always before an interrupt is reported; if saving fails, no
// interrupt is reported. A save writes only what the step changed, every value once, at any depth
// ([SaveOnWait] writes less often). Finished work is not repeated: finished nodes, results of
// [fermata.Do], and the steps of inner graphs, regardless of how many of them wait.
//
// # Answers
//
// Answering one of several interrupts enters only the node that raised it. The others keep waiting,
// with the same ids. An answer that is unknown, late or of the wrong type returns an error, and
// nothing runs.
package graph
