package sample

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// supplier is the state of the registration of a supplier.
type supplier struct {
	Name    string          `json:"name"`
	Details supplierDetails `json:"details,omitzero"`
}

var form = fermata.NewKind[formQuestion, supplierDetails]("form")

// formQuestion says why the details are needed.
type formQuestion struct {
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// supplierDetails are what the person fills in.
type supplierDetails struct {
	LegalName   string    `json:"legalName" jsonschema:"As in the commercial register."`
	IBAN        string    `json:"iban" jsonschema:"The account that invoices are paid to."`
	Currency    currency  `json:"currency"`
	PaymentDays int       `json:"paymentDays" jsonschema:"Days until an invoice is due."`
	Contacts    []contact `json:"contacts,omitempty"`
	Verified    bool      `json:"verified,omitempty" jsonschema:"I called the supplier on a known number."`
}

type contact struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

type currency string

// Choices lists the currencies that we pay in.
func (currency) Choices() []string { return []string{"EUR", "CHF", "USD"} }

// registerSupplier asks for what the agent does not know about a supplier.
func registerSupplier() (*graph.Flow[supplier], error) {
	g := graph.New[supplier]("register-supplier")
	g.Node("ask", func(ctx context.Context, s supplier) (supplier, error) {
		details, err := form.Ask(ctx, formQuestion{
			Title: fmt.Sprintf("Register the supplier %s", s.Name), Reason: "An invoice arrived from a supplier that is not registered.",
		})
		s.Details = details
		return s, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	return g.Compile()
}
