// Package fermata stops a run until a person has decided, and resumes it exactly where it stopped.
//
// This package is the API for code that runs in a graph. A node asks; the run is saved and stops.
// After the answer the node is entered again and gets it:
//
//	var Review = fermata.NewKind[Draft, Verdict]("content-review")
//
//	func humanReview(ctx context.Context, s State) (State, error) {
//		verdict, err := Review.Ask(ctx, s.Draft)
//		if err != nil {
//			return s, err // first entry: the run waits
//		}
//		s.Verdict = verdict
//		return s, nil
//	}
//
// The caller finds the open interrupts in the error that running the graph returns
// ([ExtractInterruptInfo]) and passes the answer with the interrupt id ([ResumeWithData]):
//
//	node ── Ask ──▶ runtime ── saved, then announced ──▶ person
//	node ◀─ entered again, Ask returns ── runtime ◀── answer, checked, saved ──┘
//
// The calls, safest first:
//
//   - [Kind.Ask]: a typed question. An invalid answer is rejected before anything runs.
//   - [Do]: work that is done once per activation of a node, even if the node is entered several
//     times.
//   - [Approve] and [Effect]: an action on the outside world. It runs only with an approval of
//     exactly these arguments. It is repeated only if the target allows it or a person decides
//     so.
//   - [Interrupt], [StatefulInterrupt], [CompositeInterrupt], [GetInterruptState],
//     [GetResumeContext]: the lower level, for building other calls.
//
// # Which call?
//
//	a person answers a question                             Kind.Ask
//	a person approves exactly these arguments               Approve, then Effect for the action itself
//	work without harm if repeated, such as a model call     Do
//	a tool call of an agent: approve or reject              tool.Approve
//	                         approve, reject or edit        tool.Review
//	                         ask only if a policy says so   tool.Guard
//	a person answers instead of the tool                    tool.Respond
//	a person adds arguments that the model did not give     tool.FollowUp
//	a gate between nodes, with a record of decisions        gate.Approval
//	the state before or after a node, edited or confirmed   graph.Graph.HoldBefore, HoldAfter
//
// Do asks no person and only saves a result; a crash in the middle repeats the work. Effect never
// repeats the work blindly, and takes only what Approve returned. The tool wrappers do both for a
// tool. Without a policy, Approve and tool.Guard ask; arguments can be edited after Approve unless
// Action.Fixed is set, and after tool.Review, but not after tool.Approve and tool.Guard.
//
// Package graph contains graphs, package gate approval gates, and package store the storage
// backends.
package fermata
