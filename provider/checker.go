package provider

import "context"

// Checker is a provider that can say beforehand whether this program could go on with a run. It is optional.
type Checker interface {
	// Resumable returns nil, or why this program could not go on with the run: a graph or a place in it that is gone, a question of a
	// kind that nobody knows, a state that cannot be read. It runs and changes nothing. That a node which is there would ask something
	// else now cannot be known before it runs.
	Resumable(ctx context.Context, run Run) error
}
