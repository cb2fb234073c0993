package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata/internal/money"
	"github.com/fermata-go/fermata/internal/schema"
)

// The tag of a field of a Go type is what package money reads.
func TestFor_MoneyTag(t *testing.T) {
	type payment struct {
		Amount   string `json:"amount" money:"/currency"`
		Currency string `json:"currency"`
		Fee      int    `json:"fee" money:"EUR,2"`
	}
	s, err := schema.For[payment]()
	if err != nil {
		t.Fatal(err)
	}
	data := json.RawMessage(`{"amount":"1234.5","currency":"CHF","fee":80}`)
	if err := s.Validate(data); err != nil {
		t.Error(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"amount": "1,234.50 CHF", "fee": "0.80 EUR", "currency": ""} {
		if got, _ := money.FieldsOf(s.Text).Format(name, members[name], members, ""); got != want {
			t.Errorf("%s: %q in %s", name, got, s.Text)
		}
	}
	type wrong struct {
		Amount string `json:"amount" money:"euro"`
	}
	if _, err := schema.For[wrong](); err == nil {
		t.Error("a wrong tag is accepted")
	}
}
