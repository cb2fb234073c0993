package slack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/sanitize"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// Limits of modals.
const (
	maxModalTitle = 24
	maxLabel      = 2000
	maxInput      = 3000
	maxOptions    = 100
	maxFormFields = 20
	maxPrivate    = 3000
)

// inputText is the action id of an input.
const inputText = "text"

// private is what a modal carries to its submission.
type private struct {
	Shown       shown  `json:"s"`
	Channel     string `json:"c,omitempty"`
	Thread      string `json:"t,omitempty"`
	ResponseURL string `json:"u,omitempty"`
}

// modalError is why a click has no modal, as the person reads it.
type modalError string

func (e modalError) Error() string { return string(e) }

const (
	errTooLarge   modalError = "This form is too large for Slack. Use the inbox."
	errHidden     modalError = "A value has hidden characters, and cannot be edited safely in Slack. Use the inbox."
	errChanged    modalError = "The request has changed since this message was posted."
	errNotOffered modalError = "You cannot do this with the request now. Use the inbox."
)

// actionOf returns the action of a click, as the person may do it now.
func actionOf(c *click, r api.Request) (api.Action, error) {
	if c.Shown.Digest != "" && c.Shown.Digest != r.Shown {
		return api.Action{}, errChanged
	}
	if r.Presentation != nil {
		for _, a := range r.Presentation.Actions {
			if a.Name == c.Act && sameJSON(a.Answer, c.Shown.Answer) && a.Form != nil || a.Name == c.Act && c.Act == actAsk {
				return a, nil
			}
		}
	}
	return api.Action{}, errNotOffered
}

// sameJSON compares JSON without its white space.
func sameJSON(a, b json.RawMessage) bool {
	one, _ := json.Marshal(a)
	other, err := json.Marshal(b)
	return err == nil && string(one) == string(other)
}

// modalFor returns the modal of a click: what the decision is about, and the inputs of the form.
func modalFor(c *click, r api.Request) (slack.ModalViewRequest, error) {
	action, err := actionOf(c, r)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	data, err := json.Marshal(private{Shown: c.Shown, Channel: c.Channel, Thread: c.Thread, ResponseURL: c.ResponseURL})
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	title := strings.TrimSuffix(action.Label, "…")
	submit := title
	if action.Name == actEdit {
		submit = "Approve with edits"
	}
	v := slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: blockActions, PrivateMetadata: string(data), Title: plainText(title, maxModalTitle),
		Submit: plainText(submit, maxModalTitle), Close: plainText("Cancel", maxModalTitle),
	}
	form, err := newForm(action, r)
	if err != nil {
		return v, err
	}
	var seen rendered
	seen.addPresentation(*r.Presentation)
	switch action.Name {
	case actReject, actReturn, actAsk:
	default:
		if !seen.complete {
			return v, errTooLarge
		}
	}
	if len(data) > maxPrivate {
		return v, errTooLarge
	}
	v.Blocks.BlockSet = seen.blocks
	if action.Detail != "" {
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewSectionBlock(plainText(action.Detail, maxSection), nil, nil))
	}
	inputs, err := form.blocks()
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, inputs...)
	return v, err
}

// blocks returns the inputs of a form, and the values that cannot be changed.
func (form *form) blocks() (all []slack.Block, err error) {
	for i, f := range form.fields {
		input, err := input(f)
		if err != nil {
			return nil, err
		}
		var hint *slack.TextBlockObject
		if f.Description != "" {
			hint = plainText(sanitize.Text(f.Description), maxLabel)
		}
		block := slack.NewInputBlock(fieldID(i), plainText(sanitize.Text(labelOf(f)), maxLabel), hint, input)
		// an emptied text is not an error of Slack unless the schema needs characters
		block.Optional = !f.Required || f.Kind == schemaform.Text && (f.Limits.MinLength == nil || *f.Limits.MinLength == 0)
		all = append(all, block)
	}
	if len(form.codes) > 0 {
		element := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, inputText)
		for _, code := range form.codes {
			if utf8.RuneCountInString(code) > maxButton || len(form.codes) > maxOptions {
				return nil, errTooLarge
			}
			element.Options = append(element.Options, slack.NewOptionBlockObject(code, plainText(sanitize.Text(code), maxButton), nil))
		}
		all = append(all, slack.NewInputBlock(inputCode, plainText("Reason code", maxLabel), nil, element))
	}
	for _, f := range form.locked {
		text := labelOf(f) + ": " + string(f.Original())
		all = append(all, slack.NewContextBlock("", plainText(sanitize.Text(text), maxSection)))
	}
	return all, nil
}

func labelOf(f *schemaform.Field) string { return cmp.Or(f.Title, f.Name, "Answer") }

// inputCode is the block id of the reason code of an edit.
const inputCode = "code"

// selectedCode returns the reason code of an edit; "" if it has none.
func selectedCode(values map[string]map[string]inputValue) string {
	if selected := values[inputCode][inputText].Selected; selected != nil {
		return selected.Value
	}
	return ""
}

// addCodes adds a reason code to an answer.
func addCodes(answer json.RawMessage, code string) (json.RawMessage, error) {
	members, ok := schemaform.ParseObject(answer)
	if code == "" || !ok {
		return answer, nil
	}
	codes, err := json.Marshal([]string{code})
	return members.With(schemaform.Member{Name: "codes", Value: codes}).JSON(), err
}

// form is what a modal asks for: the fields with an input, the values that the rules do not let
// people change, and the reason codes of an edit.
type form struct {
	root           *schemaform.Field
	fields, locked []*schemaform.Field
	codes          []string
}

// newForm returns the form of an action.
func newForm(a api.Action, r api.Request) (*form, error) {
	f := &form{root: schemaform.New(a.Form, a.Value)}
	for _, leaf := range leaves(f.root) {
		at := leaf.Pointer()
		if a.Editable == nil || slices.ContainsFunc(a.Editable, func(p string) bool { return p == at || strings.HasPrefix(at, p+"/") || strings.HasPrefix(p, at+"/") }) {
			f.fields = append(f.fields, leaf)
		} else {
			f.locked = append(f.locked, leaf)
		}
	}
	if a.Name == actEdit && r.Activity != nil {
		f.codes = r.Activity.EditReasons
	}
	if len(f.fields) == 0 || len(f.fields)+len(f.locked) > maxFormFields {
		return nil, errTooLarge
	}
	return f, nil
}

func fieldID(i int) string { return "f" + strconv.Itoa(i) }

// leaves returns the fields of a form that have an input. Lists and variants are JSON, but one item
// of several is a choice.
func leaves(f *schemaform.Field) (all []*schemaform.Field) {
	switch f.Kind {
	case schemaform.Object:
		for _, child := range f.Fields {
			all = append(all, leaves(child)...)
		}
		return all
	case schemaform.List:
		if item := onlyItem(f); item != nil {
			return append(all, item)
		}
		f.AsJSON()
	case schemaform.OneOf:
		f.AsJSON()
	default:
	}
	return append(all, f)
}

// onlyItem returns the item of an empty list that must have exactly one of several values; nil for
// other lists.
func onlyItem(f *schemaform.Field) *schemaform.Field {
	least, most := f.Limits.MinItems, f.Limits.MaxItems
	if least == nil || most == nil || *least != 1 || *most != 1 || len(f.Fields) > 0 {
		return nil
	}
	item := f.AddItem()
	if item == nil || item.Kind != schemaform.Choice {
		return nil
	}
	item.Title, item.Required = labelOf(f), true
	return item
}

// input returns the element for a field with its value.
func input(f *schemaform.Field) (slack.BlockElement, error) {
	if f.Kind == schemaform.Boolean || f.Kind == schemaform.Choice {
		return selectInput(f)
	}
	text := slack.NewPlainTextInputBlockElement(nil, inputText)
	value := f.Text
	if f.Null {
		value = ""
	}
	if utf8.RuneCountInString(value) > maxInput {
		return nil, errTooLarge
	}
	if sanitize.Text(value) != value {
		return nil, errHidden
	}
	text.InitialValue, text.MaxLength = value, maxInput
	long := f.Limits.MaxLength != nil && *f.Limits.MaxLength > maxShortFact
	text.Multiline = f.Kind == schemaform.JSON || long || strings.Contains(value, "\n")
	return text, nil
}

func selectInput(f *schemaform.Field) (slack.BlockElement, error) {
	if len(f.Options) == 0 || len(f.Options) > maxOptions {
		return nil, errTooLarge
	}
	element := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, inputText)
	for i, o := range f.Options {
		label := o.Title
		if label == "" {
			label = optionText(o.Value)
		}
		element.Options = append(element.Options, slack.NewOptionBlockObject(strconv.Itoa(i), plainText(sanitize.Text(label), maxButton), nil))
	}
	if f.Selected != schemaform.Unset && !f.Null {
		element.InitialOption = element.Options[f.Selected]
	}
	return element, nil
}

func optionText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && text != "" {
		return text
	}
	return string(value)
}

// fill sets the input of a form from a submission.
func fill(form *form, values map[string]map[string]inputValue) error {
	for i, f := range form.fields {
		in, ok := values[fieldID(i)][inputText]
		if !ok {
			return fmt.Errorf("slack: the submission does not have field %d", i+1)
		}
		if f.Kind == schemaform.Boolean || f.Kind == schemaform.Choice {
			f.Selected = schemaform.Unset
			if in.Selected != nil {
				n, err := strconv.Atoi(in.Selected.Value)
				if err != nil || n < 0 || n >= len(f.Options) {
					return fmt.Errorf("slack: unknown option in field %d", i+1)
				}
				f.Selected, f.Null = n, false
			}
			continue
		}
		text := ""
		if in.Value != nil {
			text = *in.Value
		}
		if f.Null && text == "" {
			continue
		}
		if f.Limits.MinLength != nil && strings.TrimSpace(text) == "" {
			text = ""
		}
		f.Text, f.Null = text, false
	}
	return nil
}

// fieldErrors returns what is wrong with a form by block id.
func fieldErrors(form *form, err error) map[string]string {
	result := make(map[string]string)
	invalid, ok := errors.AsType[schemaform.Errors](err)
	if !ok {
		result[fieldID(0)] = clip(err.Error(), maxButton*2)
		return result
	}
	for _, e := range invalid {
		id := fieldID(0)
		for i, f := range form.fields {
			if f.Pointer() == e.Pointer {
				id = fieldID(i)
			}
		}
		result[id] = clip(e.Message, maxButton*2)
	}
	return result
}
