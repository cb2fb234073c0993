package problems

import (
	"errors"
	"strings"
	"testing"
)

// The error of an invalid answer does not contain the answer.
func FuzzRedactAnswer(f *testing.F) {
	for _, seed := range []string{"secret", "validating root: type: x", `" want "`, "does not equal any of: ", "\n", "validating "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		if len(said) < 4 {
			return
		}
		for _, text := range []string{
			`validating root: type: ` + said + ` has type "string", want "object"`, `validating root: validating /properties/a: enum: ` + said + ` does not equal any of: [a b]`,
			`validating /properties/a: minLength: "` + said + `" contains 1 Unicode code points, fewer than 2`, `validating root: unexpected additional properties ["` + said + `"]`,
		} {
			known := strings.Replace(text, said, "", 1) // the schema's own text
			if field := redactAnswer(errors.New(text)); strings.Contains(field.Message, said) && !strings.Contains(known, said) && !strings.Contains("it does not match the schema", said) {
				t.Fatalf("%q was told: %+v", said, field)
			}
		}
	})
}

// An unexpected member is named as the cause.
func TestRedactAnswer_StatesWhatTheRuleExpects(t *testing.T) {
	for text, want := range map[string]string{
		`validating root: unexpected additional properties ["zz"]`:                           "it does not match the schema: it has a member that the schema does not know",
		`validating root: validating /properties/i: maximum: 11/1 is greater than 10.000000`: "it does not match the schema: maximum: it is greater than 10",
	} {
		if got := redactAnswer(errors.New(text)).Message; got != want {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}
