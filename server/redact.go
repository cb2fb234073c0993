package server

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/schema"
)

// An answer may be a secret, and what a client gets in the place of an answer ends up in logs. So why an answer does not fit is said without
// it: where, by which rule of the schema, and what that rule wants.
var (
	schemaPath = regexp.MustCompile(`validating (\S+): `)
	schemaRule = regexp.MustCompile(`^(\w+): `)
)

// expectedPhrases is, for a rule of a schema, the words behind which its message says what the rule wants; what was given stands before them.
var expectedPhrases = map[string]string{
	"type": "want ", "enum": "does not equal any of: ", "const": "does not equal ", "pattern": "does not match regular expression ",
	"minLength": "fewer than ", "maxLength": "more than ", "minimum": "it is less than ", "maximum": "it is greater than ", "required": "missing properties: ",
}

// redactAnswerError says why an answer does not fit, and not what it is.
func redactAnswerError(err error) api.Field {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return api.Field{Location: bad.Field, Message: "it should be a " + bad.Type.String()}
	}
	if _, ok := errors.AsType[*recovery.PanicError](err); ok {
		return api.Field{Message: "the code that checks it broke: whoever runs the server finds out more in its log"}
	}
	text := schema.ReadableError(err.Error())
	paths := schemaPath.FindAllStringSubmatchIndex(text, -1)
	if len(paths) == 0 {
		return api.Field{Message: text} // the words of whoever wrote the kind
	}
	last := paths[len(paths)-1]
	field := api.Field{Location: text[last[2]:last[3]], Message: "it does not fit the schema"}
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
