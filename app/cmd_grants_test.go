package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// An approval that needs two people cannot become a grant of one; and an unknown grant cannot be
// revoked.
func TestGrants_ErrorsExplain(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "3"}, exitUsage, "has not approved it"},
		{[]string{"grants", "create", id, "--for", "0s", "--uses", "3"}, exitUsage, "at least one second"},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--relax", "/x=nothing"}, exitUsage, "not valid JSON"},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--budget", "5000"}, exitUsage, "for example cost=5000"},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--budget", "cost=much"}, exitUsage, `"much" is not a non-negative integer`},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--budget", "cents=5"}, exitUsage, "neither cost nor a JSON pointer, such as /cents"},
		{[]string{"grants", "create", id}, exitUsage, "--for"},
		{[]string{"grants", "revoke", "grt_none"}, exitNotFound, "not_found"},
	} {
		if code, out, errOut := o.as("bob", c.args...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("fermata %q: %d, no %q in %s%s", c.args, code, c.want, out, errOut)
		}
	}
	var list []api.Grant
	if code, out, errOut := o.as("bob", "grants", "--json"); code != exitOK || json.Unmarshal([]byte(out), &list) != nil || len(list) != 0 {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
}

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
