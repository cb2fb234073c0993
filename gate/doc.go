// Package gate provides approval nodes: a run waits for a person's approval or rejection and
// continues forward or backward.
//
//	approveDesign := gate.Approval[State]{
//		ID:        "design_approval",
//		Message:   "Review the design documents",
//		Status:    func(s State) string { return s.Design },
//		Decisions: func(s *State) *[]gate.Record { return &s.Decisions },
//		Forward:   "distill",
//		Backward:  "design",
//	}
//
//	g := graph.New[State]("pipeline")
//	g.Node("design", design)
//	g.Node("distill", distill)
//	g.Edge(graph.Start, "design")
//	g.Edge("design", "approveDesign")
//	approveDesign.Add(g, "approveDesign") // the node, and the branch after it
//	g.Edge("distill", graph.End)
//
//	design ──▶ approveDesign ── approved ──▶ distill
//	   ▲              │
//	   └── rejected ──┘
//
// The run stops at the gate with an interrupt of kind "approval-gate". Its question contains the
// gate, the message and the current status; its answer is a [Signal], or its JSON:
//
//	_, err := flow.Run(ctx, State{Idea: "…"}, graph.WithStore(st), graph.WithRun("project-123"))
//	info, _ := fermata.ExtractInterruptInfo(err)
//	open := info.ByKind(gate.Kind.Name())[0]
//	_, err = flow.Resume(ctx, "project-123", graph.WithStore(st), graph.Answer(open.ID, gate.Signal{
//		Approved: false, Feedback: "name the risks", ApprovedBy: "alice",
//	}))
//
// On a server the runtime writes who decided, when, and how they were authenticated; an answer that
// names another person is rejected.
//
// # The decision history
//
// Every decision is appended to the state as a [Record]. The branch uses the last record of its own
// gate, and the node that repeats its work finds the feedback there:
//
//	func design(ctx context.Context, s State) (State, error) {
//		if last, ok := approveDesign.Last(s); ok {
//			s.Design = improve(s.Design, last.Feedback)
//		}
//		…
//
// # Guarantees
//
// Only a valid answer to the open interrupt moves a run past a gate. A resume without an answer
// does not, nor does an answer without "approved", nor a record that other code wrote into the
// state, because the gate's own record comes after it. Without a record the branch goes backward.
// An approval counts for the status that was shown: if [Approval.Status] returns something else
// when the answer is used, because a state modifier changed the state, the gate asks again and does
// not record the answer.
//
// Parallel gates write to the same list. Register a merge function for it:
//
//	graph.MergeField(g, "decisions", graph.Append[[]gate.Record])
//
// # Names in other systems
//
// Orchestrators written for LangGraph in TypeScript often have a module with these names:
//
//	approveDesignNode, approveTaskDagNode               Approval.Ask, the node of one Approval each
//	routeAfterApproveDesign, routeAfterApproveTaskDag   Approval.Route
//	HitlGate                                            Approval.ID, a string
//	HitlInterruptValue                                  Question, with the same JSON names
//	HitlApprovalSignal                                  Signal, with the same JSON names
//	HitlDecisionRecord                                  Record
//	DesignApprovalRoute, DagApprovalRoute               Approval.Forward and Approval.Backward, node names
//	                                                    that Compile checks
//	hitlDecisions                                       the field that Approval.Decisions returns
//	Command({ resume: signal })                         graph.Answer(id, signal), with the interrupt's id
//	HITL_APPROVAL_REQUIRED (event)                      the event "asked" of a server
//
// The event "asked" is sent when the run is saved at the gate, so that a consumer can decide at
// once. examples/devpipeline has a consumer that waits for it without polling.
package gate
