package problems

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/schema"
)

// An answer may be a secret, and clients log problem responses. So the reason why an answer does
// not match its schema is given without the answer: the path, the rule, and what the rule expects.
var (
	schemaPath = regexp.MustCompile(`validating (\S+): `)
	schemaRule = regexp.MustCompile(`^(\w+): `)
)

// expectedPhrases maps a schema rule to the phrase in the library's message after which the
// expected value follows; the given value precedes it.
var expectedPhrases = map[string]string{
	"type": "want ", "enum": "does not equal any of: ", "const": "does not equal ", "pattern": "does not match regular expression ",
	"minLength": "fewer than ", "maxLength": "more than ", "minimum": "it is less than ", "maximum": "it is greater than ", "required": "missing properties: ",
}

// redactAnswer returns why an answer does not match its schema, without the answer.
func redactAnswer(err error) api.Field {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return api.Field{Location: bad.Field, Message: "it should be a " + bad.Type.String()}
	}
	if _, ok := errors.AsType[*recovery.PanicError](err); ok {
		return api.Field{Message: "the validation code failed; the server log has details"}
	}
	text := schema.ReadableError(err.Error())
	paths := schemaPath.FindAllStringSubmatchIndex(text, -1)
	if len(paths) == 0 {
		return api.Field{Message: text} // a text that the author of the kind wrote
	}
	last := paths[len(paths)-1]
	field := api.Field{Location: text[last[2]:last[3]], Message: "it does not match the schema"}
	rest := text[last[1]:]
	rule := schemaRule.FindStringSubmatch(rest)
	if rule == nil {
		if strings.HasPrefix(rest, "unexpected additional properties ") {
			field.Message += ": it has a member that the schema does not know"
		}
		return field
	}
	field.Message += ": " + rule[1]
	if words, ok := expectedPhrases[rule[1]]; ok {
		if at := strings.LastIndex(rest, words); at >= 0 {
			field.Message += ": " + rest[at:]
		}
	}
	return field
}
