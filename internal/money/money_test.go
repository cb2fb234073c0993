package money_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/money"
)

func TestFormat_IsExact(t *testing.T) {
	const euro = `"x-currency":"EUR"`
	for _, c := range []struct{ property, value, english, german string }{
		{euro, `1234.50`, "1,234.50 EUR", "1.234,50 EUR"},
		{euro, `"1234.5"`, "1,234.50 EUR", "1.234,50 EUR"},
		{euro, `-999`, "-999 EUR", "-999 EUR"},
		{euro, `1000`, "1,000 EUR", "1.000 EUR"},
		{euro, `9007199254740993.01`, "9,007,199,254,740,993.01 EUR", "9.007.199.254.740.993,01 EUR"},
		{euro, `0.125`, "0.125 EUR", "0,125 EUR"},
		{euro + `,"x-minor-units":2`, `8000`, "80.00 EUR", "80,00 EUR"},
		{euro + `,"x-minor-units":2`, `-5`, "-0.05 EUR", "-0,05 EUR"},
		{euro + `,"x-minor-units":2`, `123456789`, "1,234,567.89 EUR", "1.234.567,89 EUR"},
		{`"x-currency-field":"/currency"`, `12`, "12 CHF", "12 CHF"},
		// these are shown as they are
		{euro + `,"x-minor-units":2`, `80.5`, "", ""},
		{euro + `,"x-minor-units":9`, `80`, "", ""},
		{euro, `1e3`, "", ""},
		{euro, `"007"`, "", ""},
		{euro, `null`, "", ""},
		{`"x-currency":"euro"`, `1`, "", ""},
		{`"x-currency-field":"/none"`, `1`, "", ""},
		{`"x-currency-field":"/a/b"`, `1`, "", ""},
	} {
		fields := money.FieldsOf(json.RawMessage(`{"properties":{"amount":{"format":"money",` + c.property + `},"other":true}}`))
		object := map[string]json.RawMessage{"amount": json.RawMessage(c.value), "currency": json.RawMessage(`"CHF"`)}
		for lang, want := range map[string]string{language.English: c.english, language.German: c.german} {
			if got, ok := fields.Format("amount", object["amount"], object, lang); got != want || ok != (want != "") {
				t.Errorf("%s of %s in %s: %q, %t, not %q", c.property, c.value, lang, got, ok, want)
			}
		}
		if _, ok := fields.Format("other", json.RawMessage(`1`), object, ""); ok {
			t.Error("a member that is not an amount is formatted")
		}
	}
}
