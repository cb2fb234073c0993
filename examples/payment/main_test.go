package main

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/target"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestPayment(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example:    example,
		Answers:    []consoletest.Answer{{To: "transfer_money", Lines: []string{"y"}}},
		Refusals:   []consoletest.Answer{{To: "transfer_money", Lines: []string{"n the lamps came broken"}}},
		Reason:     "the lamps came broken",
		Effects:    func(data string) (int, int, error) { return target.Open(data, "bank").Count() },
		ModelCalls: 7,
	})
}

// The approver must see on whose behalf the money would move.
func TestPayment_TheQuestionNamesTheWayToIt(t *testing.T) {
	p := consoletest.Start(t, t.TempDir())
	if asked := p.Question(); !strings.Contains(asked, "supervisor ▸ cashier (call_2_1) ▸ transfer_money (call_1_1)") {
		t.Errorf("it asked:\n%s", asked)
	}
}

func TestFindInvoices_UnknownPayeeHasNoInvoice(t *testing.T) {
	result, err := findInvoices.Call(t.Context(), []byte(`{"payee":"Mallory"}`))
	if err != nil || result.Text != "None is open." {
		t.Errorf("%+v, %v", result, err)
	}
}
