package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
)

// A program built with this package can receive notices.
func TestNotify_OptionReceivesNotices(t *testing.T) {
	told := make(chan desk.Notice, 10)
	p := new(program)
	Notify(func(_ context.Context, account string, notice desk.Notice) error {
		if account == "acme" {
			told <- notice
		}
		return nil
	})(p)
	r, err := start(t.Context(), p, settingsOf(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.serve(ctx) }()
	defer func() { stop(); <-done }()

	_, err = r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-1", Graph: "external:request", Input: json.RawMessage(`{"kind":"refund","data":{"amount":12}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if notice := <-told; notice.Kind != desk.NoticeNotify || notice.Request == "" {
		t.Errorf("%+v", notice)
	}
}
