package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/schema"
)

type named struct {
	Name string `json:"name"`
}

type hidden struct {
	Colour colour `json:"colour"`
}

// The option ",string" was ignored, so no answer was valid for a kind with such a field.
func TestFor_StringOptionGivesAStringSchema(t *testing.T) {
	type quoted struct {
		I int         `json:"i,string"`
		U *uint8      `json:"u,string"`
		F float64     `json:"f,string,omitempty"`
		B bool        `json:"b,string"`
		S string      `json:"s,string"`
		C colour      `json:"c,string"`
		N json.Number `json:"n,string"`
		//lint:ignore SA5008 that the option is not heeded is what is tested: it has a text of its own, and none around it
		ID id `json:"id,string"`
		//lint:ignore SA5008 here, too
		L []int `json:"l,string"`
	}
	fits(t, quoted{I: -5, U: new(uint8(7)), F: 1e30, B: true, S: `say "yes"`, C: "red", N: "5"}, `{"type":"object","properties":{`+
		`"i":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},`+
		`"u":{"type":["null","string"],"pattern":"^(0|[1-9][0-9]*)$"},`+
		`"f":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"},`+
		`"b":{"type":"string","enum":["true","false"]},`+
		`"s":{"type":"string","pattern":"^\".*\"$"},`+
		`"c":{"type":"string","enum":["\"red\"","\"blue\""]},`+
		`"n":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"},`+
		`"id":{"type":"string"},"l":{"type":["null","array"],"items":{"type":"integer"}}},`+
		`"required":["i","u","b","s","c","n","id","l"],"additionalProperties":false}`)
	refuses[quoted](t, `{"i":5,"u":null,"b":"true","s":"\"\"","c":"\"red\"","n":"0","id":"00000000","l":null}`)
}

// Maps with number keys had no schema and could not be used in a question. Keys with choices were
// not checked.
func TestFor_MapKeysAreChecked(t *testing.T) {
	fits(t, map[int]string{-1: "a"}, `{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"}}`)
	fits(t, map[uint8]string{1: "a"}, `{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"pattern":"^(0|[1-9][0-9]*)$"}}`)
	fits(t, map[id]string{{1}: "a"}, `{"type":"object","additionalProperties":{"type":"string"}}`)
	fits(t, map[colour]int{"red": 1}, `{"type":"object","additionalProperties":{"type":"integer"},"propertyNames":{"enum":["red","blue"]}}`)
	refuses[map[colour]int](t, `{"green":1}`)
	refuses[map[int]string](t, `{"one":"a"}`)
}

// The members of an embedded struct belong to the outer one, unless the embedded field has a name.
func TestFor_EmbeddedStructsFollowEncodingJSON(t *testing.T) {
	const name = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`
	type flat struct{ named }
	fits(t, flat{named{"a"}}, name)
	type Named named
	type within struct {
		named `json:"within"`
	}
	fits(t, within{named{"a"}}, `{"type":"object","properties":{"within":`+name+`},"required":["within"],"additionalProperties":false}`)
	type maybe struct{ *Named }
	const optional = `{"type":"object","properties":{"name":{"type":"string"}},"additionalProperties":false}`
	fits(t, maybe{}, optional)
	fits(t, maybe{&Named{"a"}}, optional)
	type outer struct {
		Name int `json:"name"` // less deep, so it wins
		Named
	}
	fits(t, outer{}, `{"type":"object","properties":{"name":{"type":"integer"}},"required":["name"],"additionalProperties":false}`)
}

// Fields of an embedded unexported struct are part of the JSON. Their choices were not checked.
func TestFor_ChoicesOfEmbeddedStructsApply(t *testing.T) {
	type answer struct{ hidden }
	fits(t, answer{hidden{"red"}}, `{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}},"required":["colour"],"additionalProperties":false}`)
	refuses[answer](t, `{"colour":"green"}`)
}

func TestFor_UnsupportedTypeErrorNamesThePath(t *testing.T) {
	type inner struct{ F func() }
	type outer struct{ Inner []inner }
	_, err := schema.For[outer]()
	if err == nil || !strings.Contains(err.Error(), "outer.Inner: schema_test.inner.F: JSON has no func()") {
		t.Error(err)
	}
}

func refuses[T any](t *testing.T, data string) {
	t.Helper()
	s, err := schema.For[T]()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(json.RawMessage(data)); err == nil {
		t.Errorf("%s fits %s", data, s.Text)
	}
}
