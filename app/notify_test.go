package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/serve"
)

// A program built with this package can receive notices.
func TestNotify_OptionReceivesNotices(t *testing.T) {
	told := make(chan desk.Notice, 10)
	p := &serve.Program{Program: new(cli.Program)}
	Notify(func(_ context.Context, account string, notice desk.Notice) error {
		if account == "acme" {
			told <- notice
		}
		return nil
	})(p)
	r, err := serve.Start(t.Context(), p, settingsOf(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	defer func() { stop(); <-done }()

	_, err = r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-1", Graph: "external:request", Input: json.RawMessage(`{"kind":"refund","data":{"amount":12}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if notice := <-told; notice.Kind != desk.NoticeNotify || notice.Request == "" {
		t.Errorf("%+v", notice)
	}
}
