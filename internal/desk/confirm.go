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
// arguments that the requirement names, separated by spaces. Absent arguments are left out. The
// name of the action replaces values that cannot be typed, and all values if none is present. A
// value can be typed if it is a short text or a number and is not masked. ConfirmText returns "" if
// nothing has to be typed. args are the requested arguments.
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
	named := false
	for _, pointer := range r.Requirement.Confirm {
		value := valueAt(doc, pointer)
		if value == missing {
			continue
		}
		text := typedValue(value)
		if text == "" {
			if named {
				continue
			}
			text, named = r.Subject.Action, true
		}
		values = append(values, text)
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
