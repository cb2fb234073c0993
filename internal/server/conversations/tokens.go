package conversations

import (
	"context"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
)

// reader returns the principal whose rights apply to what a caller reads for a speaker: a frontend
// reads as the end user that it speaks for, without roles of its own.
func (s speaker) reader(ctx context.Context) authn.Principal {
	if s.by == "" {
		return endpoint.Principal(ctx)
	}
	return authn.Principal{Account: s.account, ID: s.user}
}

// watchTokens forwards what the models of the runs write that have not ended. After it returns,
// nothing follows of those that have.
func (f *follower) watchTokens(ctx context.Context, record dialog.Record) {
	for _, link := range record.Runs {
		stop, watched := f.watched[link.Run]
		switch {
		case link.Settled && watched:
			stop()
			delete(f.watched, link.Run)
		case !link.Settled && !watched && link.Question == "":
			if f.watched == nil {
				f.watched = make(map[string]func())
			}
			f.watched[link.Run] = f.forward(ctx, link.Run)
		}
	}
}

// forward starts to send the tokens of a run. stop returns when the last one is sent.
func (f *follower) forward(ctx context.Context, run string) (stop func()) {
	tokens := f.Tokens(f.reader, run)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tokens(ctx, func(text string) error { return f.event("", api.EventToken, api.Token{Run: run, Text: text}) })
	}()
	return func() { cancel(); <-done }
}

// unwatch stops all tokens.
func (f *follower) unwatch() {
	for _, stop := range f.watched {
		stop()
	}
}

// event writes an event of the stream.
func (f *follower) event(id, kind string, data any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Event(id, kind, data)
}

// comment writes a comment, which keeps the connection alive.
func (f *follower) comment(text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Comment(text)
}
