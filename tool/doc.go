// Package tool makes typed Go functions into tools that a model can call, and tools into ones that stop for a person.
//
//	type Booking struct {
//		From string `json:"from" jsonschema:"IATA code"`
//		To   string `json:"to"`
//	}
//
//	book := tool.New("book_ticket", "Books a train ticket.", func(ctx context.Context, b Booking) (string, error) {
//		return railway.Book(ctx, b, tool.Key(ctx))
//	})
//	held := tool.Approve(book) // nothing is booked before a person has seen exactly these arguments and said yes
//
// The wrappers are [Approve] (yes or no), [Review] (yes, no, or with other arguments), [Guard] (a policy decides per call),
// [Respond] (a person answers in the tool's place) and [FollowUp] (a person completes the arguments). They can be combined
// in any order; the order of events is always the same:
//
//	arguments of the model ─▶ schema ─▶ follow-up ─▶ policy and person ─▶ call, once
//
// so that what a person approves is what runs. A refusal is no error: it is a [Result] that tells the model what happened.
//
// A tool may do on its own whatever a node of a graph may: ask, approve, remember, perform effects. Its calls need a run around them,
// as an agent or a graph is; package agent makes them.
package tool
