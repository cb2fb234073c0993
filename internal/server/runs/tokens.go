package runs

import (
	"context"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/provider"
)

// Tokens listens to what the models of a run write from now on. Call forward once: it calls send
// with the parts that a caller may see, as far as this process executes the run, with an empty line
// between messages. It returns when ctx ends or send fails.
func (h *Handlers) Tokens(me authn.Principal, stateKey string) (forward func(ctx context.Context, send func(text string) error)) {
	progress, stop := h.Executor.WatchProgress(me.Account, stateKey)
	return func(ctx context.Context, send func(text string) error) {
		defer stop()
		h.forwardTokens(ctx, me, stateKey, progress, send)
	}
}

func (h *Handlers) forwardTokens(ctx context.Context, me authn.Principal, stateKey string, progress <-chan *executor.Progress, send func(text string) error) {
	var checked, maySee, wrote bool // checked: maySee is known until the next step
	for {
		var p *executor.Progress
		select {
		case <-ctx.Done():
			return
		case p = <-progress:
		}
		switch part := p.Progress.(type) {
		case provider.Step: // a request may have been decided
			checked = false
		case provider.Token:
			text := part.Text
			if !checked {
				view, err := h.Executor.GetRun(ctx, me.Account, stateKey)
				if err == nil {
					maySee, err = h.maySeeTokens(me, view)
				}
				if err != nil {
					return // the line with the whole text follows
				}
				checked = true
				if wrote {
					text = "\n\n" + text
				}
			}
			if !maySee {
				continue
			}
			if wrote = true; send(text) != nil {
				return
			}
		}
	}
}
