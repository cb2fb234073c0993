package sample

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// payout is the state of a payment to a supplier.
type payout struct {
	Supplier string  `json:"supplier"`
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
	Receipt  string  `json:"receipt,omitempty"`
}

// payoutArgs are the arguments of the action.
type payoutArgs struct {
	Supplier string  `json:"supplier"`
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// errBankTimeout is the answer of the sample's bank: the payment may have been made or not.
var errBankTimeout = errors.New("the bank did not answer within 30 s")

// paySupplier pays a supplier through a bank that never answers in time. So the effect is in doubt,
// and a person has to look at the bank's statement.
func paySupplier() (*graph.Flow[payout], error) {
	g := graph.New[payout]("payout")
	g.Node("pay", func(ctx context.Context, p payout) (payout, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[payoutArgs]{
			Name: "payout", Args: payoutArgs{p.Supplier, p.Amount, p.Currency}, Fixed: true,
			Summary: fmt.Sprintf("Pay %.2f %s to %s.", p.Amount, p.Currency, p.Supplier),
		})
		if err != nil {
			return p, err
		}
		p.Receipt, err = fermata.Effect(ctx, yes, func(context.Context, payoutArgs, string) (string, error) {
			return "", errBankTimeout
		})
		return p, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	return g.Compile()
}
