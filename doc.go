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
// Package graph contains graphs, package gate approval gates, and package store the storage
// backends.
package fermata
