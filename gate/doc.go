// Package gate has approval nodes: places where a run waits for a person's yes or no and is led by it, forward or back.
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
// The run stops at the gate with an interrupt of kind "approval-gate". Its question says which gate it is, what to look at
// and where things stand; its answer is a [Signal], or the JSON of one:
//
//	_, err := flow.Run(ctx, State{Idea: "…"}, graph.WithStore(st), graph.WithRun("project-123"))
//	info, _ := fermata.ExtractInterruptInfo(err)
//	open := info.ByKind(gate.Kind.Name())[0]
//	_, err = flow.Resume(ctx, "project-123", graph.WithStore(st), graph.Answer(open.ID, gate.Signal{
//		Approved: false, ApprovedAt: time.Now(), Feedback: "name the risks", ApprovedBy: "alice",
//	}))
//
// # The trail
//
// Every decision, yes or no, is appended to the state as a [Record]. The branch goes by the last record of its own gate, and
// the node that has to do its work again finds there what to do better:
//
//	func design(ctx context.Context, s State) (State, error) {
//		if last, ok := approveDesign.Last(s); ok {
//			s.Design = improve(s.Design, last.Feedback)
//		}
//		…
//
// # What cannot happen
//
// Nothing but a valid answer to the open question moves a run past a gate: not a resume without one, not an answer without
// "approved" in it, and not a record that somebody wrote into the state, because the gate's own record comes after it. Where
// no record is found the branch goes backward. A yes counts for what was shown: if [Approval.Status] would say something else
// by the time the answer is used, because a state modifier changed the state under the open gate, the gate asks again, and the
// trail does not have the answer to what is no longer there.
//
// Gates that run side by side write to the same trail. Tell the graph how to join it:
//
//	graph.MergeField(g, "decisions", graph.Append[[]gate.Record])
package gate
