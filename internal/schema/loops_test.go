package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/schema"
)

// An infinite check overflows the stack and ends the process.
func TestParse_InfiniteRecursionReturnsError(t *testing.T) {
	doubling := `{"$defs":{`
	for i := range 20 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d20":{}},"$ref":"#/$defs/d0"}`
	for name, text := range map[string]string{
		"itself":         `{"$ref":"#"}`,
		"itself in all":  `{"type":"object","allOf":[{"$ref":"#"}]}`,
		"in a circle":    `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"not":{"$ref":"#/$defs/a"}}]}},"$ref":"#/$defs/a"}`,
		"in a property":  `{"properties":{"x":{"allOf":[{"$ref":"#/properties/x"}]}}}`,
		"dynamic":        `{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`,
		"doubling":       doubling,
		"escaped":        `{"$defs":{"a/b":{"if":{"$ref":"#/$defs/a~1b"}}},"$ref":"#/$defs/a~1b"}`,
		"in an array":    `{"prefixItems":[{"oneOf":[{"$ref":"#/prefixItems/0"}]}]}`,
		"if, then, else": `{"if":true,"then":{"$ref":"#"}}`,
	} {
		for _, text := range []string{text, otherCase(text)} {
			if _, err := schema.Parse(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), "schema") {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
}

// otherCase changes the case of the keywords of a schema. Go's decoder ignores case, so the check
// followed "$Ref" while the search for "$ref" did not see it.
func otherCase(text string) string {
	return strings.NewReplacer(`"$ref":`, `"$Ref":`, `"$dynamicRef":`, `"$dynamicref":`, `"allOf":`, `"allof":`, `"anyOf":`, `"ANYOF":`, `"oneOf":`, `"OneOf":`, `"not":`, `"Not":`,
		`"if":`, `"IF":`, `"then":`, `"Then":`, `"prefixItems":`, `"prefixitemſ":`, `"properties":`, `"Properties":`, `"patternProperties":`, `"patternproperties":`,
		`"items":`, `"Items":`, `"pattern":`, `"Pattern":`, `"contains":`, `"Contains":`, `"enum":`, `"Enum":`).Replace(text)
}

func TestParse_AcceptsRecursiveTree(t *testing.T) {
	tree, err := schema.Parse(json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"left":{"$ref":"#"},"right":{"$ref":"#"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		`{"n":1,"left":{"n":2,"right":{"n":3}}}`:    true,
		`{"n":1,"left":{"n":2,"right":{"n":"no"}}}`: false,
	} {
		if err := tree.Validate(json.RawMessage(text)); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
