package strictjson_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/strictjson"
)

func TestSameValue_ComparesNumbersByValue(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"a":1.0,"b":[1e2]}`, `{"b":[100],"a":1}`}, {`-0`, `0`}, {`0.10`, `1e-1`}, {`9007199254740993`, `9007199254740993.0`}, {`1e999999999`, `1e999999999`},
		{`" 1.0"`, `" 1.0"`},
	} {
		if !strictjson.SameValue([]byte(pair[0]), []byte(pair[1])) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{`9007199254740993`, `9007199254740992`}, {`1.0`, `"1.0"`}, {`"1.0"`, `"1"`}, {`{"a":1}`, `{"a":1,"b":null}`}, {`[1,2]`, `[2,1]`}, {`1`, `true`}, {`{`, `{`},
		{`1e-999999999`, `0`}, {`1e999999999`, `2e999999999`}, {`1`, `"number 1/1"`}, {strings.Repeat("1", 500), strings.Repeat("1", 500) + ".0"},
	} {
		if strictjson.SameValue([]byte(pair[0]), []byte(pair[1])) {
			t.Errorf("%s and %s are the same", pair[0], pair[1])
		}
	}
}
