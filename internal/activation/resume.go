package activation

import (
	"context"
	"maps"
)

type targetsKey struct{}

// WithResumeTargets returns a context that answers several interrupts, in addition to those that
// ctx already answers. The map is copied.
func WithResumeTargets(ctx context.Context, answers map[string]any) context.Context {
	before, _ := ctx.Value(targetsKey{}).(map[string]any)
	merged := make(map[string]any, len(before)+len(answers))
	maps.Copy(merged, before)
	maps.Copy(merged, answers)
	return context.WithValue(ctx, targetsKey{}, merged)
}

// TakeResumeTargets returns the answers in ctx by interrupt id (nil if none), and a context without
// them. Engines use it, so that the answers for one run do not reach another run that a node
// resumes. The map must not be modified.
func TakeResumeTargets(ctx context.Context) (map[string]any, context.Context) {
	targets, _ := ctx.Value(targetsKey{}).(map[string]any)
	if targets == nil {
		return nil, ctx
	}
	return targets, context.WithValue(ctx, targetsKey{}, nil)
}
