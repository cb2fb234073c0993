// Package fermata holds a run until a person has decided, and lets it go on exactly where it stopped.
//
// This package is the vocabulary: what code that runs in a graph says to the runtime. A node asks, and
// the run is saved and stops there; after the answer the node is entered again and gets it:
//
//	var Review = fermata.NewKind[Draft, Verdict]("content-review")
//
//	func humanReview(ctx context.Context, s State) (State, error) {
//		verdict, err := Review.Ask(ctx, s.Draft)
//		if err != nil {
//			return s, err // the first time: the run waits
//		}
//		s.Verdict = verdict
//		return s, nil
//	}
//
// Whoever shows the question to a person finds it in the error that running the graph returns ([ExtractInterruptInfo]),
// and hands the answer back by its id ([ResumeWithData]):
//
//	node ── Ask ──▶ runtime ── saved, then announced ──▶ person
//	node ◀─ entered again, Ask returns ── runtime ◀── answer, checked, saved ──┘
//
// The calls, the safest first:
//
//   - [Kind.Ask]: a question with a type. A wrong answer is refused before anything runs.
//   - [Do]: work that is done once per visit of a node, however often the node is entered.
//   - [Approve] and [Effect]: an action on the outside world. It runs only with an approval of exactly these arguments, and
//     not twice without a target that allows it or a person's word.
//   - [Interrupt], [StatefulInterrupt], [CompositeInterrupt], [GetInterruptState], [GetResumeContext]: the level below, for
//     those who build their own.
//
// Graphs are in package graph, approval gates in package gate, places to keep runs in store and below it.
package fermata
