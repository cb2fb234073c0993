// Package enduser passes the end user of a run from its provider to package dialog, in the context
// of the nodes and tools.
package enduser

import "context"

// RunPrefix begins the state keys of the runs of conversations. Clients cannot choose such a key.
const RunPrefix = "conversation-"

type key struct{}

// With returns a context with the end user of a run.
func With(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, key{}, user)
}

// From returns the end user of the run; "" if it has none.
func From(ctx context.Context) string {
	user, _ := ctx.Value(key{}).(string)
	return user
}
