package outbox

import (
	"context"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// deliverWithdrawal delivers that message.
func (m *Messenger) deliverWithdrawal(ctx context.Context, document store.Document, back requests.RunMessage) (err error) {
	defer recovery.Recover(&err)
	// another run may have the state key
	history, err := m.store.History(ctx, document.Account, document.Run)
	if docs.IsNotFound(err) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	p, err := m.providers.Of(history.Run)
	if err != nil {
		return err
	}
	withdrawer, hears := p.(provider.Withdrawer)
	if !hears {
		return nil
	}
	named, err := m.providers.RunView(history.Run, m.store)
	if err != nil {
		return err
	}
	withdrawal := provider.Withdrawal{InterruptID: ids.ProviderID(back.Request), Reason: back.Withdrawn, At: document.Created, Attempt: back.Attempts - 1}
	if withdrawal.Input, err = m.store.Input(history.Run); err != nil {
		return err
	}
	return withdrawer.NotifyWithdrawn(ctx, named, withdrawal)
}
