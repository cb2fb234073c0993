package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack/socketmode"

	"github.com/fermata-go/fermata/channel"
)

// Run keeps Socket Mode connections open until ctx ends. Without an app token it only waits.
func (c *Channel) Run(ctx context.Context, desk channel.Desk) error {
	if c.config.AppToken == "" {
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make([]error, c.config.Sockets)
	var all sync.WaitGroup
	for i := range c.config.Sockets {
		all.Go(func() {
			// slack-go reconnects; it returns only for errors such as a revoked token
			failed[i] = c.runSocket(ctx, desk)
			cancel()
		})
	}
	all.Wait()
	err := errors.Join(failed...)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// runSocket serves one connection.
func (c *Channel) runSocket(ctx context.Context, desk channel.Desk) error {
	client := socketmode.New(c.api)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-client.Events:
				if event.Request != nil {
					work.Go(func() { c.serveEnvelope(ctx, desk, client, *event.Request) })
				}
			}
		}
	})
	err := client.RunContext(ctx)
	cancel()
	return fmt.Errorf("slack: socket mode: %w", err)
}

// serveEnvelope stores what an envelope contains, and then acknowledges it. Slack sends an envelope
// again that was not acknowledged.
func (c *Channel) serveEnvelope(ctx context.Context, desk channel.Desk, client *socketmode.Client, r socketmode.Request) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	var answer any
	var err error
	switch r.Type {
	case socketmode.RequestTypeInteractive:
		answer, err = c.acceptInteraction(ctx, desk, r.Payload)
	case socketmode.RequestTypeSlashCommands:
		var fields map[string]any
		if json.Unmarshal(r.Payload, &fields) != nil {
			return
		}
		answer, err = c.acceptCommand(ctx, desk, func(name string) string { text, _ := fields[name].(string); return text })
	default:
		return
	}
	if err != nil && !errors.Is(err, errPayload) {
		c.config.Log.Warn("slack envelope not accepted", "err", err)
		return
	}
	ackCtx, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if answer == nil {
		err = client.AckCtx(ackCtx, r.EnvelopeID, nil)
	} else {
		err = client.AckCtx(ackCtx, r.EnvelopeID, answer)
	}
	if err != nil {
		c.config.Log.Warn("slack envelope not acknowledged", "err", err)
	}
}
