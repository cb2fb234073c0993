package channel

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/internal/desk"
)

// AnyKind is the kind of a channel for all targets that no other channel serves, also those that
// name people, such as group:finops. Its addresses are whole targets.
const AnyKind = "*"

// Notify returns a channel of [AnyKind] that calls a function. The function gets a notice for each
// target, and one with the kind [desk.NoticeRerender] for each target after the request has
// changed. It reads the request itself. The key of the notice is the same for each attempt.
func Notify(send func(ctx context.Context, account string, notice desk.Notice) error) Channel {
	return notifier(send)
}

type notifier func(ctx context.Context, account string, notice desk.Notice) error

// Kind returns [AnyKind].
func (n notifier) Kind() string { return AnyKind }

// Send calls the function.
func (n notifier) Send(ctx context.Context, m Message) (string, error) {
	notice := m.Notice
	notice.Key, notice.Kind, notice.Targets = m.Delivery, m.Kind, []string{m.To}
	if m.Ref != "" {
		notice.Rev, notice.Step = m.Card.Revision, 0
		notice.Key = fmt.Sprintf("%s/r%d", m.Delivery, m.Card.Revision)
	}
	return m.Delivery, n(ctx, m.Account, notice)
}

// Find reports a copy if the request is over, so that the function can update what it may have
// shown. Otherwise the notice is sent again.
func (n notifier) Find(_ context.Context, m Message) (string, bool, error) {
	return m.Delivery, !m.Card.Open(), nil
}
