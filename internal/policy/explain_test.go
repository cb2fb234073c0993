package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/policy"
)

func TestExplain_Golden(t *testing.T) {
	operating, limited := load(t, operations), load(t, spending)
	sunday := atTime(time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC))
	granted := decide(t, operating, input("loop", `{"iterations":200}`))
	granted.Verdict, granted.Requirement, granted.Grant = policy.Allow, nil, "grant-7"
	widened := load(t, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba'], count: 2, widen: ['group:heads:${req.graph}']}], deadline: 1h, route: up, verbs: [approve, reject, claim]}}\n")
	staged := load(t, "default: ask\ndefaults: {ask: {groups: [{from: ['group:dba']}, {from: ['group:heads'], stage: 1}], deadline: 1h, on_timeout: reject, on_escalate: return, editable: [/a], edit_reasons: [typo], reject_reasons: [risk], confirm: [/a], visible_to: [requester, 'group:dba'], sensitive: [/iban]}}\n")
	for name, d := range map[string]policy.Decision{
		"default":  decide(t, operating, input("mail.send", `{}`)),
		"merged":   decide(t, operating, input("db.execute", `{"sql":"truncate t","iterations":500}`, sunday)),
		"closed":   decide(t, operating, input("data.export", `{}`)),
		"dry-run":  decide(t, operating, input("bank.transfer", `{"amount_minor":1}`, sunday)),
		"spending": decide(t, limited, withCounters(limited, input("transfer", `{"cents":500}`), 99_900)),
		"granted":  granted,
		"staged":   decide(t, staged, input("mail.send", `{}`)),
		"widened":  decide(t, widened, input("mail.send", `{}`)),
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			if err := d.Explain(&text); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/explain/"+name+".txt", text.String())
			golden.Compare(t, "testdata/explain/"+name+".json", asJSON(t, d)+"\n")
		})
	}
}
