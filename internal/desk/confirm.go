package desk

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/jsondiff"
)

// maxConfirmed is the maximum length of a value that a person types, in characters.
const maxConfirmed = 100

// ConfirmText returns the text that an approver types to approve the action: the values of the
// arguments that the requirement names, separated by spaces, or the name of the action if no value
// can be typed. It is "" if nothing has to be typed. args are the requested arguments.
//
// Masked values, and values that are not a short text or a number, are left out.
func (r Request) ConfirmText(args json.RawMessage) string {
	if !r.Requirement.IsTyped() || r.Subject.Action == "" {
		return ""
	}
	if r.Edit != nil {
		args = r.Edit.Args
	}
	var doc any
	if err := jsondiff.Decode(r.MaskArgs(args), &doc); err != nil {
		return r.Subject.Action
	}
	var values []string
	for _, pointer := range r.Requirement.Confirm {
		if text := typedValue(valueAt(doc, pointer)); text != "" {
			values = append(values, text)
		}
	}
	if len(values) == 0 {
		return r.Subject.Action
	}
	return strings.Join(values, " ")
}

// typedValue returns a value as a person types it; "" if it is not a short text or a number.
func typedValue(value any) string {
	var text string
	switch v := value.(type) {
	case string:
		text = strings.TrimSpace(v)
	case json.Number:
		text = v.String()
	}
	if utf8.RuneCountInString(text) > maxConfirmed || strings.Contains(text, Masked) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}

// checkConfirmed checks that the approver typed the name of the object.
func (d *update) checkConfirmed() error {
	if want := d.r.ConfirmText(d.env.Args); want != strings.TrimSpace(d.from.Confirm) && want != "" {
		return d.refuse(ErrNotConfirmed, "")
	}
	return nil
}
