package desk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/jsondiff"
	"github.com/fermata-go/fermata/internal/sets"
)

// Masked replaces a sensitive value.
const Masked = "•••"

// minMaskedText is the shortest sensitive text that is also masked where other texts contain it.
// Shorter ones occur by chance.
const minMaskedText = 4

// MaskData returns what the request shows without its sensitive values, and the pointers of the
// values that were masked. A pointer is relative to the arguments of an action, otherwise to the
// data. Other texts that contain a masked text, such as a summary, are masked at that place. Data
// without sensitive values is returned unchanged.
func (r Request) MaskData(data json.RawMessage) (json.RawMessage, []string) {
	masked, found := maskUnder(data, r.sensitiveRoot(), r.Requirement.Sensitive)
	return r.maskCondition(masked, "/voided"), found
}

// maskCondition masks the text at a pointer if the request has sensitive values: the condition of
// an approval may contain one.
func (r Request) maskCondition(data json.RawMessage, pointer string) json.RawMessage {
	if r.Subject.Kind != fermata.Approval.Name() || len(r.Requirement.Sensitive) == 0 {
		return data
	}
	masked, _ := maskUnder(data, "", []string{pointer})
	return masked
}

// MaskAnswer returns an answer to the request without sensitive values: an approval may have edited
// arguments, and the answer to a hold is the edited state. Other answers do not have the form of
// the data.
func (r Request) MaskAnswer(answer json.RawMessage) json.RawMessage {
	if r.sensitiveRoot() == "" && r.Subject.Kind != holdKind {
		return answer
	}
	masked, _ := maskUnder(answer, r.sensitiveRoot(), r.Requirement.Sensitive)
	return r.maskCondition(masked, "/conditions/onlyIf")
}

// SensitiveTexts returns the texts of the sensitive values in what the request shows, and in its
// edited arguments, as far as they are long enough to be recognized elsewhere.
func (r Request) SensitiveTexts(data json.RawMessage) (texts []string) {
	add := func(data json.RawMessage, root string) {
		var doc any
		if len(data) == 0 || jsondiff.Decode(data, &doc) != nil {
			return
		}
		for _, pointer := range r.Requirement.Sensitive {
			texts = appendTexts(texts, valueAt(doc, root+pointer))
		}
	}
	add(data, r.sensitiveRoot())
	if r.Edit != nil {
		add(r.Edit.Args, "")
	}
	return texts
}

// MaskTexts masks texts in all strings of a JSON value, and numbers that are equal to one.
func MaskTexts(value json.RawMessage, texts []string) json.RawMessage {
	var doc any
	if len(texts) == 0 || len(value) == 0 {
		return value
	}
	if err := jsondiff.Decode(value, &doc); err != nil {
		return jsondiff.Encode(Masked)
	}
	return jsondiff.Encode(replaceTexts(doc, texts, textReplacer(texts)))
}

// MaskArgs returns arguments of the action without sensitive values.
func (r Request) MaskArgs(args json.RawMessage) json.RawMessage {
	masked, _ := maskUnder(args, "", r.Requirement.Sensitive)
	return masked
}

// SensitivePointers returns the pointers of sensitive values in what the request shows, and in its
// edited arguments.
func (r Request) SensitivePointers(data json.RawMessage) []string {
	_, found := r.MaskData(data)
	if r.Edit != nil {
		_, edited := maskUnder(r.Edit.Args, "", r.Requirement.Sensitive)
		found = sets.Union(found, edited)
	}
	return found
}

// sensitiveRoot returns the pointer that sensitive pointers are relative to.
func (r Request) sensitiveRoot() string {
	if r.Subject.Kind == fermata.Approval.Name() || r.Subject.Kind == fermata.EffectInDoubt.Name() {
		return "/args"
	}
	return ""
}

// CheckNotMasked returns [ErrInvalidEdit] if an answer has the mask in place of a sensitive value:
// its author has not seen the value that they send back.
func (r Request) CheckNotMasked(answer json.RawMessage) error {
	return r.checkNotMasked(answer, r.sensitiveRoot())
}

// checkNotMasked checks the values at the sensitive pointers below root. The answer to a question
// has another form than its data, so there the mask is not allowed anywhere.
func (r Request) checkNotMasked(answer json.RawMessage, root string) error {
	var doc any
	if len(r.Requirement.Sensitive) == 0 || len(answer) == 0 || jsondiff.Decode(answer, &doc) != nil {
		return nil // invalid JSON is reported elsewhere
	}
	pointers := r.Requirement.Sensitive
	if r.sensitiveRoot() == "" {
		pointers = []string{""}
	}
	for _, pointer := range pointers {
		if hasMask(valueAt(doc, root+pointer)) {
			return fmt.Errorf("%w: the value of %q is masked: reveal the request and send the real value", ErrInvalidEdit, pointer)
		}
	}
	return nil
}

func hasMask(value any) bool {
	switch v := value.(type) {
	case string:
		return v == Masked
	case []any:
		return slices.ContainsFunc(v, hasMask)
	case map[string]any:
		for _, member := range v {
			if hasMask(member) {
				return true
			}
		}
	}
	return false
}

// maskUnder masks the values at pointers below root. Data that cannot be decoded is masked as a
// whole.
func maskUnder(data json.RawMessage, root string, pointers []string) (json.RawMessage, []string) {
	if len(pointers) == 0 || len(data) == 0 {
		return data, nil
	}
	var doc any
	if err := jsondiff.Decode(data, &doc); err != nil {
		return jsondiff.Encode(Masked), slices.Clone(pointers)
	}
	var found, texts []string
	for _, pointer := range pointers {
		value := valueAt(doc, root+pointer)
		if value == missing {
			continue
		}
		found = append(found, pointer)
		texts = appendTexts(texts, value)
		doc = replaceAt(doc, root+pointer)
	}
	if len(found) == 0 {
		return data, nil
	}
	if len(texts) > 0 {
		doc = replaceTexts(doc, texts, textReplacer(texts))
	}
	return jsondiff.Encode(doc), found
}

// Overlap reports whether one of two JSON pointers leads to the other's value or to a part of it.
func Overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// missing is the value at a pointer that leads nowhere.
var missing any = new(struct{ _ byte })

// pointerTokens splits a JSON pointer.
func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens
}

// valueAt returns the value at a pointer, or missing.
func valueAt(doc any, pointer string) any {
	for _, token := range pointerTokens(pointer) {
		switch v := doc.(type) {
		case map[string]any:
			member, ok := v[token]
			if !ok {
				return missing
			}
			doc = member
		case []any:
			n, ok := listIndex(token, len(v))
			if !ok {
				return missing
			}
			doc = v[n]
		default:
			return missing
		}
	}
	return doc
}

// replaceAt masks the value at a pointer that exists.
func replaceAt(doc any, pointer string) any {
	tokens := pointerTokens(pointer)
	if len(tokens) == 0 {
		return Masked
	}
	last := tokens[len(tokens)-1]
	switch parent := valueAt(doc, pointer[:strings.LastIndexByte(pointer, '/')]).(type) {
	case map[string]any:
		parent[last] = Masked
	case []any:
		if n, ok := listIndex(last, len(parent)); ok {
			parent[n] = Masked
		}
	}
	return doc
}

func listIndex(token string, length int) (int, bool) {
	n, err := strconv.Atoi(token)
	return n, err == nil && n >= 0 && n < length && strconv.Itoa(n) == token
}

// appendTexts adds the texts of a value that are long enough to be recognized elsewhere.
func appendTexts(texts []string, value any) []string {
	switch v := value.(type) {
	case string:
		if len(v) >= minMaskedText && v != Masked {
			texts = append(texts, v)
		}
	case json.Number:
		if len(v) >= minMaskedText {
			texts = append(texts, v.String())
		}
	case []any:
		for _, item := range v {
			texts = appendTexts(texts, item)
		}
	case map[string]any:
		for _, member := range v {
			texts = appendTexts(texts, member)
		}
	}
	return texts
}

// textReplacer masks texts. A longer one goes first, because it may contain a shorter one.
func textReplacer(texts []string) *strings.Replacer {
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(texts))
	for _, text := range slices.Compact(texts) {
		pairs = append(pairs, text, Masked)
	}
	return strings.NewReplacer(pairs...)
}

// replaceTexts masks texts in all strings of a value, and numbers that are equal to one.
func replaceTexts(value any, texts []string, replacer *strings.Replacer) any {
	switch v := value.(type) {
	case string:
		return replacer.Replace(v)
	case json.Number:
		if slices.Contains(texts, v.String()) {
			return Masked
		}
	case []any:
		for i := range v {
			v[i] = replaceTexts(v[i], texts, replacer)
		}
	case map[string]any:
		for name := range v {
			v[name] = replaceTexts(v[name], texts, replacer)
		}
	}
	return value
}
