package schema_test

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/schema"
)

// id is a common case: bytes that are written as a string.
type id [4]byte

func (i id) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, i[:]), nil }
func (i *id) UnmarshalText(text []byte) error {
	_, err := hex.Decode(i[:], text)
	return err
}

// price is written as an array, unlike its fields.
type price struct{ cents int }

func (p price) MarshalJSON() ([]byte, error)     { return json.Marshal([]int{p.cents}) }
func (p *price) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &[]*int{&p.cents}) }

type body []byte

// The encoding of a Go value must match the schema of its type; otherwise clients could not send
// it.
func TestFor_EncodedValueMatchesItsSchema(t *testing.T) {
	fits(t, []byte("a"), `{"type":["null","string"],"contentEncoding":"base64"}`)
	fits(t, []byte(nil), `{"type":["null","string"],"contentEncoding":"base64"}`)
	fits(t, body("a"), `{"type":["null","string"],"contentEncoding":"base64"}`)
	fits(t, id{1}, `{"type":"string"}`)
	fits(t, &id{1}, `{"type":["null","string"]}`)
	fits(t, (*id)(nil), `{"type":["null","string"]}`)
	fits(t, []id{{1}}, `{"type":["null","array"],"items":{"type":"string"}}`)
	fits(t, price{5}, `true`)
	fits(t, &price{5}, `true`)
	fits(t, new(json.RawMessage(`5`)), `true`)
	fits(t, json.Number("5.5"), `{"type":"number"}`)
	fits(t, big.NewInt(5), `true`)
	fits(t, netip.MustParseAddr("192.0.2.1"), `{"type":"string"}`)
	fits(t, time.Unix(0, 0), `{"type":"string"}`)
	fits(t, slog.LevelInfo, `{"type":"string"}`)
	fits(t, struct{ M map[string]int }{}, `{"type":"object","properties":{"M":{"type":["null","object"],"additionalProperties":{"type":"integer"}}},"required":["M"],"additionalProperties":false}`)
	fits(t, (*colour)(nil), `{"type":["null","string"],"enum":["red","blue",null]}`)
	fits(t, map[string]int{"a": 1}, `{"type":"object","additionalProperties":{"type":"integer"}}`)
}

func fits[T any](t *testing.T, value T, want string) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(data); err != nil || string(s.Text) != want {
		t.Errorf("%T: %s does not fit %s: %v", value, data, s.Text, err)
	}
	if text := schema.TextFor[T](); string(text) != want {
		t.Errorf("%T: shown as %s", value, text)
	}
}

type colour string

func (colour) Choices() []string { return []string{"red", "blue"} }

func TestTextFor_ListsChoices(t *testing.T) {
	if text := schema.TextFor[[]colour](); string(text) != `{"type":["null","array"],"items":{"type":"string","enum":["red","blue"]}}` {
		t.Errorf("%s", text)
	}
}
