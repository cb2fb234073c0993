package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "payment", run) }

func TestPayment(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{{To: "Approve?", Line: "y"}},
		Refusal: []string{"n the lamps came broken"},
		Reason:  "The cashier reports: Nothing was paid. transfer_money was refused by you: the lamps came broken",
		Effects: func(t testing.TB, dir string) int { return exampletest.Files(t, filepath.Join(dir, "payments")) },
	})
}

// The approver must see on whose behalf the money would move.
func TestPayment_TheQuestionNamesTheWayToIt(t *testing.T) {
	asked, _ := exampletest.Start(t, t.TempDir()).Read()
	if !strings.Contains(asked, "asked by agent:supervisor;tool:cashier#call_2_1;agent:cashier;tool:transfer_money#call_1_1") {
		t.Errorf("it asked:\n%s", asked)
	}
}

func TestFindInvoices_UnknownPayeeHasNoInvoice(t *testing.T) {
	result, err := findInvoices.Call(t.Context(), []byte(`{"payee":"Mallory"}`))
	if err != nil || result.Text != "None is open." {
		t.Errorf("%+v, %v", result, err)
	}
}
