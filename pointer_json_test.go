package fermata_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
)

type invoice struct {
	Payee string  `json:"payee"`
	Cents big.Int `json:"cents"` // its JSON method has a pointer receiver
}

func invoiceOf(cents int64) invoice { return invoice{Payee: "acme", Cents: *big.NewInt(cents)} }

var invoices = fermata.NewKind[invoice, invoice]("invoice-by-value")

// Regression: a value is not addressable, so encoding/json ignores pointer methods: people were
// asked to pay {}, and the approved arguments could not be decoded.
func TestI6_PointerMarshalersAreUsedForQuestions(t *testing.T) {
	paid := ""
	r := newRun(t, func(ctx context.Context) (string, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[invoice]{Name: "pay", Args: invoiceOf(4200), Target: func(context.Context, invoice) (any, error) {
			return *big.NewInt(7), nil
		}})
		if err != nil {
			return "", err
		}
		receipt, err := fermata.Effect(ctx, yes, func(_ context.Context, args invoice, _ string) (big.Int, error) {
			paid += args.Cents.String()
			return args.Cents, nil
		})
		if err != nil {
			return "", err
		}
		done, err := fermata.Do(ctx, "sum", func(context.Context) (big.Int, error) { return receipt, nil })
		if err != nil {
			return "", err
		}
		said, err := invoices.Ask(ctx, invoiceOf(4300))
		return paid + " " + receipt.String() + " " + done.String() + " " + said.Cents.String(), err
	})
	_, err := r.start()
	asked, _ := fermata.Approval.Question(waitsFor(t, err))
	if string(asked.Args) != `{"payee":"acme","cents":4200}` || string(asked.Target) != "7" {
		t.Fatalf("shown: %s of %s", asked.Args, asked.Target)
	}
	_, err = r.answer(err, fermata.Decision{Verb: fermata.VerbApprove})
	if shown := waitsFor(t, err).Data; string(shown) != `{"payee":"acme","cents":4300}` {
		t.Fatalf("shown: %s", shown)
	}
	got, err := r.answer(err, invoiceOf(4400))
	if err != nil || got != "4200 4200 4200 4400" {
		t.Fatalf("got %q, %v", got, err)
	}
}

var tallies = fermata.NewKind[map[string]invoice, string]("invoices-in-a-map")

// Map values are not addressable. An error is better than showing {}.
func TestAsk_MapValueWithPointerMarshalerReturnsError(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		return tallies.Ask(ctx, map[string]invoice{"a": invoiceOf(1)})
	})
	_, err := r.start()
	if bad, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(bad.Error(), "use a map of pointers") {
		t.Errorf("got %v", err)
	}
}

func TestInterrupt_PointerMarshalersAreUsedForInfoAndState(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		if was, has, left := fermata.GetInterruptState[big.Int](ctx); was {
			return left.String(), map[bool]error{false: context.Canceled}[has]
		}
		return "", fermata.StatefulInterrupt(ctx, invoiceOf(1), *big.NewInt(9))
	})
	_, err := r.start()
	if shown := waitsFor(t, err).Data; string(shown) != `{"payee":"acme","cents":1}` {
		t.Fatalf("shown: %s", shown)
	}
	if got, err := r.answer(err, "go"); err != nil || got != "9" {
		t.Fatalf("got %q, %v", got, err)
	}
}

// payment has an untyped place, as arguments of a generic tool have.
type payment struct {
	Payee  string `json:"payee"`
	Amount any    `json:"amount"`
}

var payments = fermata.NewKind[payment, string]("payment-untyped")

// Regression: encoding/json reaches a value in an interface without its address, so pointer methods
// are not called: {} was stored and shown, and no error was returned.
func TestI6_PointerMarshalerInAnUntypedPlaceReturnsErrorWithItsPath(t *testing.T) {
	value := payment{"acme", *big.NewInt(7)}
	for name, node := range map[string]func(context.Context) (string, error){
		"question": func(ctx context.Context) (string, error) { return payments.Ask(ctx, value) },
		"approval": func(ctx context.Context) (string, error) {
			_, err := fermata.Approve(ctx, fermata.Action[payment]{Name: "pay", Args: value})
			return "", err
		},
		"result of Do": func(ctx context.Context) (string, error) {
			_, err := fermata.Do(ctx, "sum", func(context.Context) (payment, error) { return value, nil })
			return "", err
		},
		"info of an interrupt":  func(ctx context.Context) (string, error) { return "", fermata.Interrupt(ctx, value) },
		"state of an interrupt": func(ctx context.Context) (string, error) { return "", fermata.StatefulInterrupt(ctx, "go on?", value) },
	} {
		_, err := newRun(t, node).start()
		if bad, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(bad.Error(), "it.Amount holds a big.Int: use a pointer to big.Int") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDo_PointerInAnUntypedPlaceIsEncodedByItsMethods(t *testing.T) {
	r := newRun(t, func(ctx context.Context) (string, error) {
		found, err := fermata.Do(ctx, "sum", func(context.Context) (payment, error) { return payment{"acme", big.NewInt(7)}, nil })
		return fmt.Sprint(found.Amount), err
	})
	if got, err := r.start(); err != nil || got != "7" {
		t.Errorf("got %q, %v", got, err)
	}
}
