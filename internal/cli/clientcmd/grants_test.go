package clientcmd

import (
	"testing"

	"github.com/fermata-go/fermata/api"
)

// The budget of a grant and its use are shown everywhere.
func TestGrants_HaveABudget(t *testing.T) {
	of, err := parseBudget("/a=b/cents=5000")
	if err != nil || *of != (api.Budget{Field: "/a=b/cents", Max: 5000}) {
		t.Errorf("%+v, %v", of, err)
	}
	if none, err := parseBudget(""); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
	if got := budgetText(api.Grant{Spent: 300, Budget: &api.Budget{Field: "cost", Max: 1000}}); got != ", 300 of 1000 spent (cost)" {
		t.Error(got)
	}
}
