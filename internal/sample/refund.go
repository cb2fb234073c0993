package sample

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
)

// refund is the state of a refund.
type refund struct {
	Order    int     `json:"order"`
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
	Note     string  `json:"note,omitempty"`
	Receipt  string  `json:"receipt,omitempty"`
}

// refundArgs are the arguments of the action, which an approver may edit as far as the policy says.
type refundArgs struct {
	Order    int     `json:"order"`
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
	Note     string  `json:"note,omitempty" jsonschema:"What the customer reads."`
}

// explainRefund replies to clarification requests.
func explainRefund(_ context.Context, r refund, back provider.Clarification) (string, error) {
	return fmt.Sprintf("You asked %q. %s returned order %d; the parcel arrived at the warehouse yesterday.", back.Text, r.Customer, r.Order), nil
}

// refundOrder pays an amount back, if policy allows it or a person approves.
func refundOrder() (*graph.Flow[refund], error) {
	g := graph.New[refund]("refund-order")
	g.Node("pay", func(ctx context.Context, r refund) (refund, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[refundArgs]{
			Name:    "refund",
			Args:    refundArgs{Order: r.Order, Customer: r.Customer, Amount: r.Amount, Currency: r.Currency, Note: r.Note},
			Summary: fmt.Sprintf("Refund %.2f %s on order %d to %s.", r.Amount, r.Currency, r.Order, r.Customer),
		})
		if err != nil {
			return r, err
		}
		r.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, args refundArgs, key string) (string, error) {
			return fmt.Sprintf("%.2f %s were refunded on order %d (%s)", args.Amount, args.Currency, args.Order, key), nil
		}, fermata.Idempotent())
		return r, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	return g.Compile()
}
