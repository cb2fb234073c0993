// Package money formats amounts of money as the schema of their object says:
//
//	"amount": {"type": "string", "format": "money", "x-currency-field": "/currency"}   1,234.50 EUR
//	"cents":  {"type": "integer", "format": "money", "x-currency": "EUR", "x-minor-units": 2}
//
// Digits are moved and grouped as text, so that an amount is exact whatever its size.
package money

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/fermata-go/fermata/internal/language"
)

// Fields are the amounts of an object by the name of their member.
type Fields map[string]field

type field struct {
	Format        string `json:"format"`
	Currency      string `json:"x-currency"`
	CurrencyField string `json:"x-currency-field"`
	MinorUnits    int    `json:"x-minor-units"`
}

// FieldsOf returns the amounts that the JSON Schema of an object declares.
func FieldsOf(schema json.RawMessage) Fields {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	fields := make(Fields)
	for name, property := range object.Properties {
		var f field
		if json.Unmarshal(property, &f) == nil && f.Format == "money" && f.MinorUnits >= 0 && f.MinorUnits <= maxMinorUnits {
			fields[name] = f
		}
	}
	return fields
}

// maxMinorUnits is the most decimals that a currency has, and maxDigits how long an amount may be.
const (
	maxMinorUnits = 3
	maxDigits     = 40
)

var (
	decimal  = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// CurrencyField returns the name of the member with the currency of an amount; "" if the schema
// itself names it.
func (fs Fields) CurrencyField(name string) string {
	pointer, ok := strings.CutPrefix(fs[name].CurrencyField, "/")
	if !ok || fs[name].Currency != "" || strings.Contains(pointer, "/") {
		return ""
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer)
}

// Format returns a member of an object as an amount with its currency, in a language. It returns
// false if the member is not an amount, or has no valid number or currency: then it is shown as it
// is.
func (fs Fields) Format(name string, value json.RawMessage, object map[string]json.RawMessage, lang string) (string, bool) {
	f, ok := fs[name]
	if !ok {
		return "", false
	}
	code := f.Currency
	if code == "" {
		code = text(object[fs.CurrencyField(name)])
	}
	parts := decimal.FindStringSubmatch(text(value))
	if !currency.MatchString(code) || parts == nil || len(parts[0]) > maxDigits {
		return "", false
	}
	whole, fraction := parts[2], parts[3]
	switch {
	case f.MinorUnits > 0 && fraction != "": // cents have no decimals
		return "", false
	case f.MinorUnits > 0:
		whole = strings.Repeat("0", max(0, f.MinorUnits+1-len(whole))) + whole
		whole, fraction = whole[:len(whole)-f.MinorUnits], whole[len(whole)-f.MinorUnits:]
	case len(fraction) == 1: // 24.5 is 24.50
		fraction += "0"
	}
	group, point := ",", "."
	if lang == language.German {
		group, point = ".", ","
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + group + whole[i:]
	}
	if fraction != "" {
		whole += point + fraction
	}
	return parts[1] + whole + " " + code, true
}

// text returns a string, or another value as JSON.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	return s
}
