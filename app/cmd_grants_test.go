package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
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
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "3"}, cli.ExitUsage, "has not approved it"},
		{[]string{"grants", "create", id, "--for", "0s", "--uses", "3"}, cli.ExitUsage, "at least one second"},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--relax", "/x=nothing"}, cli.ExitUsage, "not valid JSON"},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--budget", "5000"}, cli.ExitUsage, "for example cost=5000"},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--budget", "cost=much"}, cli.ExitUsage, `"much" is not a non-negative integer`},
		{[]string{"grants", "create", id, "--for", "1h", "--uses", "1", "--budget", "cents=5"}, cli.ExitUsage, "neither cost nor a JSON pointer, such as /cents"},
		{[]string{"grants", "create", id}, cli.ExitUsage, "--for"},
		{[]string{"grants", "revoke", "grt_none"}, cli.ExitNotFound, "not_found"},
	} {
		if code, out, errOut := o.as("bob", c.args...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("fermata %q: %d, no %q in %s%s", c.args, code, c.want, out, errOut)
		}
	}
	var list []api.Grant
	if code, out, errOut := o.as("bob", "grants", "--json"); code != cli.ExitOK || json.Unmarshal([]byte(out), &list) != nil || len(list) != 0 {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
}
