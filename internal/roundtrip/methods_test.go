package roundtrip_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/roundtrip"
)

type embedded struct{ Inner any }

type nested struct {
	embedded
	List []any
	ByID map[string]any
	P    *embedded
	Skip any `json:"-"`
}

func TestMarshal_ValueWhosePointerMethodsAreNotCalledReturnsErrorWithItsPath(t *testing.T) {
	seven := *big.NewInt(7)
	for want, v := range map[string]any{
		"it.embedded.Inner holds a big.Int":           nested{embedded: embedded{seven}},
		"it.List[1] holds a big.Int":                  nested{List: []any{1, seven}},
		`it.ByID["a"][0] holds a big.Int`:             nested{ByID: map[string]any{"a": []any{seven}}},
		"it.P.Inner holds a struct":                   &nested{P: &embedded{struct{ N big.Int }{seven}}},
		"it.P.Inner.Inner holds a big.Int":            nested{P: &embedded{embedded{seven}}},
		`it["a"] holds a [1]big.Int`:                  map[string]any{"a": [1]big.Int{seven}},
		`it["a"] holds a map[string]big.Int, but`:     map[string]any{"a": map[string]big.Int{"b": seven}},
		"it holds a map[string]big.Int, but":          map[string]big.Int{"b": seven},
		`it["a"].Sums holds a map[string]big.Int, bu`: map[string]any{"a": struct{ Sums map[string]big.Int }{map[string]big.Int{"b": seven}}},
	} {
		for _, encode := range []func(any) ([]byte, error){roundtrip.Marshal, roundtrip.Encode} {
			data, err := encode(v)
			if !errors.Is(err, roundtrip.ErrPointerMethods) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %s, %v", want, data, err)
			}
		}
	}
}

func TestMarshal_ValueWhoseMethodsAreCalledIsEncoded(t *testing.T) {
	seven := *big.NewInt(7)
	for want, v := range map[string]any{
		`7`:                        seven,
		`[7]`:                      []any{&seven},
		`{"a":[7]}`:                map[string]any{"a": []big.Int{seven}},
		`{"Inner":7}`:              embedded{&seven},
		`["2026-01-02T00:00:00Z"]`: []any{time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
	} {
		if data, err := roundtrip.Marshal(v); err != nil || string(data) != want {
			t.Errorf("%s, %v; want %s", data, err, want)
		}
	}
	if _, err := roundtrip.Marshal(nested{Skip: seven}); err != nil {
		t.Error(err)
	}
}
