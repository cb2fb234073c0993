package worker

import (
	"context"

	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/provider"
)

// CheckInput returns nil, or a [*provider.InputError] if the input of a start is invalid. It asks
// the provider, or compares the input with the schema of the graph.
func (w *Worker) CheckInput(ctx context.Context, request StartRequest) error {
	p, g, err := w.providers.Find(request.Graph)
	if err != nil {
		return err
	}
	if err := errs.ValidateJSON("the input", request.Input, errs.MaxInput); err != nil {
		return err
	}
	if checker, ok := p.(provider.InputChecker); ok {
		return checker.CheckInput(ctx, request.Account, g.Name, request.Input)
	}
	if g.Input == nil {
		return nil
	}
	if err := schema.CheckData("the input", g.Input, request.Input); err != nil { // its text may have data of the input
		return &provider.InputError{Code: provider.CodeInvalidInput, Problem: "it does not match the input schema of the graph"}
	}
	return nil
}
