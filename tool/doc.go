// Package tool converts typed Go functions to tools that a model can call, and wraps tools so that
// they stop for a person.
//
//	type Booking struct {
//		From string `json:"from" jsonschema:"IATA code"`
//		To   string `json:"to"`
//	}
//
//	book := tool.New("book_ticket", "Books a train ticket.", func(ctx context.Context, b Booking) (string, error) {
//		return railway.Book(ctx, b, tool.Key(ctx))
//	})
//	held := tool.Approve(book) // nothing is booked before a person has approved exactly these arguments
//
// The wrappers are [Approve] (approve or reject), [Review] (also edit the arguments), [Guard] (a
// policy decides per call), [Respond] (a person answers instead of the tool) and [FollowUp] (a
// person completes the arguments). They can be combined in any order; the order of processing is
// always the same:
//
//	arguments of the model ─▶ schema ─▶ follow-up ─▶ policy and person ─▶ call, once
//
// so that the approved arguments are the ones that run. A rejection is not an error: it is a
// [Result] that tells the model what happened.
//
// A tool may use everything that a node of a graph may: ask, approve, Do, perform effects. Its
// calls need a run, that is, an agent or a graph. Package agent makes the calls of its agents; in a
// graph that calls a model itself, a [Node] does.
package tool
