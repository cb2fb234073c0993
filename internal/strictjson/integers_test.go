package strictjson_test

import (
	"testing"

	"github.com/fermata-go/fermata/internal/strictjson"
)

func TestDecode_IntegersMayHaveAFractionOrAnExponent(t *testing.T) {
	for text, want := range map[string]int64{
		"1000.0": 1000, "1e3": 1000, "-2.50e1": -25, "0.0": 0, "-0.0": 0, "0e99": 0, "9007199254740993.0": 9007199254740993, "12.5e-1": 0, "1.5": 0, "1e400": 0, "1e-1": 0, "99999999999999999999.0": 0,
	} {
		var got struct{ N int64 }
		err := strictjson.Decode([]byte(`{"N":`+text+`}`), &got)
		if exact := want != 0 || text == "0.0" || text == "-0.0"; exact && (err != nil || got.N != want) || !exact && text != "0e99" && err == nil {
			t.Errorf("%s is %d, %v", text, got.N, err)
		}
	}
	var mixed struct {
		Text  string
		Count int
		Rate  float64
	}
	if err := strictjson.Decode([]byte(`{"Text":"1.0 \" 2.0","Count":3.0,"Rate":1.50}`), &mixed); err != nil || mixed.Text != `1.0 " 2.0` || mixed.Count != 3 || mixed.Rate != 1.5 {
		t.Errorf("got %+v, %v", mixed, err)
	}
	var text struct{ N string }
	if err := strictjson.Decode([]byte(`{"N":1.0}`), &text); err == nil {
		t.Errorf("a number is not a string: %+v", text)
	}
}
