package actiontext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/actiontext"
)

func TestOf_WordsActions(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"refund", `{"order":17,"amount":"120.00","currency":"EUR"}`, "Refund 120.00 EUR on order 17"},
		{"refund-order", `{"orderId":1041,"customer":"Ines Roth","amount":24.9,"currency":"EUR","env":"prod"}`, "Refund 24.90 EUR on order 1041 for Ines Roth (prod)"},
		{"refund", `{"order":17,"payment":9007199254740993,"amount":"120.00"}`, "Refund on order 17, payment 9007199254740993"},
		{"drop_table", `{"name":"users","rows":48213}`, "Drop table users, rows 48213"},
		{"deploy", `{"service":"checkout","version":"v2.31.0"}`, "Deploy service checkout, version v2.31.0"},
		{"payout", `{"supplier":"Blum","amount":1840,"currency":"EUR"}`, "Pay out 1840 EUR to Blum"},
		{"send_email", `{"to":"a@b.c","subject":"Hi","body":"` + strings.Repeat("x", 100) + `"}`, "Send email to a@b.c, subject Hi"},
		{"mcp__github__create_issue", `{"title":"It is broken"}`, "Create issue It is broken (github)"},
		{"db.truncateTable", `{"table":"logs"}`, "Truncate table logs (db)"},
		{"shell", `{"command":"ls"}`, "Run shell, command ls"},
		{"shell", `{"force":true,"deep":{"a":1},"none":null,"no":false}`, "Run shell, force true"},
		{"delete", `[1,2]`, "Delete"},
		{"delete", `not JSON`, "Delete"},
		{"dele\u202ete", `{}`, "Run dele\u202ete"},
		{"transfer", `{"amount":"1e400","currency":"EUR"}`, "Transfer amount 1e400, currency EUR"},
	} {
		if got := actiontext.Text(actiontext.Of(actiontext.Action{Name: c.name, Args: json.RawMessage(c.args)}, actiontext.English)); got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.name, c.args, got, c.want)
		}
	}
}

func TestOf_UsesTitlesAndHidesMaskedValues(t *testing.T) {
	got := actiontext.Text(actiontext.Of(actiontext.Action{
		Name: "create-account", Args: json.RawMessage(`{"iban":"DE1","secret":"x","bic":"Y"}`), Masked: []string{"/secret"},
		Schema: json.RawMessage(`{"properties":{"iban":{"title":"IBAN"},"bic":{"title":"BIC"}}}`),
	}, actiontext.English))
	if got != "Create account, IBAN DE1, BIC Y" {
		t.Error(got)
	}
}

// A channel escapes and marks values, so each value is a part of its own.
func TestOf_ValuesAreSeparateParts(t *testing.T) {
	parts := actiontext.Of(actiontext.Action{Name: "drop-table", Args: json.RawMessage(`{"name":"<b>users"}`)}, actiontext.English)
	for _, p := range parts {
		if strings.Contains(p.Text, "<b>") != p.Value {
			t.Errorf("%+v", p)
		}
	}
}

func TestOf_WordsAreTranslated(t *testing.T) {
	parts := actiontext.Of(actiontext.Action{Name: "refund", Args: json.RawMessage(`{"order":1,"amount":2,"currency":"EUR","to":"x"}`)}, func(w string) string { return "[" + w + "]" })
	if got := actiontext.Text(parts); got != "Refund 2 EUR [on] order 1 [to] x" {
		t.Error(got)
	}
}

func TestLabel_SplitsNames(t *testing.T) {
	for name, want := range map[string]string{"legalName": "legal name", "payment_days": "payment days", "amount": "amount", "IBAN": "IBAN", "": "", "to\u202enameX": "to\u202enameX"} {
		if got := actiontext.Label(name); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
}
