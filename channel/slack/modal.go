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

	"github.com/fermata-go/fermata"
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
	maxText       = 2000 // of a reason or a question
)

// inputText is the block and action id of the text of a modal.
const inputText = "text"

// private is what a modal carries to its submission.
type private struct {
	Shown       shown  `json:"s"`
	Channel     string `json:"c,omitempty"`
	Thread      string `json:"t,omitempty"`
	ResponseURL string `json:"u,omitempty"`
}

// errNoForm says that a request cannot be edited in Slack. The person gets a link.
var errNoForm = errors.New("slack: the form is too large for Slack")

// modal returns an empty modal for a click.
func modal(c *click, title, submit string) (slack.ModalViewRequest, error) {
	data, err := json.Marshal(private{Shown: c.Shown, Channel: c.Channel, Thread: c.Thread, ResponseURL: c.ResponseURL})
	if err == nil && len(data) > maxPrivate {
		err = errNoForm
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: c.Act, PrivateMetadata: string(data), Title: plainText(title, maxModalTitle),
		Submit: plainText(submit, maxModalTitle), Close: plainText("Cancel", maxModalTitle),
	}, err
}

// textModal asks for a reason or a question.
func textModal(c *click, title, submit, label string) (slack.ModalViewRequest, error) {
	v, err := modal(c, title, submit)
	input := slack.NewPlainTextInputBlockElement(nil, inputText)
	input.Multiline, input.MaxLength = true, maxText
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewInputBlock(inputText, plainText(label, maxLabel), nil, input))
	return v, err
}

// formModal asks for the fields of a form.
func formModal(c *click, title, submit string, form *form) (slack.ModalViewRequest, error) {
	v, err := modal(c, title, submit)
	if err != nil {
		return v, err
	}
	if len(form.fields) == 0 || len(form.fields)+len(form.locked) > maxFormFields {
		return v, errNoForm
	}
	for i, f := range form.fields {
		input, err := input(f)
		if err != nil {
			return v, err
		}
		label := labelOf(f)
		var hint *slack.TextBlockObject
		if f.Description != "" {
			hint = plainText(sanitize.Text(f.Description), maxLabel)
		}
		block := slack.NewInputBlock(fieldID(i), plainText(sanitize.Text(label), maxLabel), hint, input)
		// an emptied text is not an error of Slack; the schema decides
		block.Optional = !f.Required || f.Kind == schemaform.Text
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, block)
	}
	if len(form.codes) > 0 {
		if err := addCodes(&v, form.codes); err != nil {
			return v, err
		}
	}
	for _, f := range form.locked {
		text := labelOf(f) + ": " + string(f.Original())
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewContextBlock("", plainText(sanitize.Text(text), maxSection)))
	}
	return v, nil
}

func labelOf(f *schemaform.Field) string { return cmp.Or(f.Title, f.Name, "Answer") }

// inputCode is the block id of the reason codes of a modal.
const inputCode = "code"

// addCodes adds a list of reason codes of which one must be selected.
func addCodes(v *slack.ModalViewRequest, codes []string) error {
	if len(codes) > maxOptions {
		return errNoForm
	}
	element := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, inputText)
	for _, code := range codes {
		if utf8.RuneCountInString(code) > maxButton {
			return errNoForm
		}
		element.Options = append(element.Options, slack.NewOptionBlockObject(code, plainText(sanitize.Text(code), maxButton), nil))
	}
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewInputBlock(inputCode, plainText("Reason code", maxLabel), nil, element))
	for _, block := range v.Blocks.BlockSet { // the code is enough
		if text, ok := block.(*slack.InputBlock); ok && text.BlockID == inputText {
			text.Optional = true
		}
	}
	return nil
}

// selectedCodes returns the reason code of a submitted modal; nil if it has none.
func selectedCodes(values map[string]map[string]inputValue) []string {
	selected := values[inputCode][inputText].Selected
	if selected == nil {
		return nil
	}
	return []string{selected.Value}
}

// form is what a modal asks for: the fields with an input, the values that the rules do not let
// people change, and the reason codes of an edit.
type form struct {
	root           *schemaform.Field
	fields, locked []*schemaform.Field
	codes          []string
}

// newForm returns a form whose fields can be changed as editable says; nil limits nothing.
func newForm(root *schemaform.Field, editable []string) *form {
	f := &form{root: root}
	for _, leaf := range leaves(root) {
		at := leaf.Pointer()
		if editable == nil || slices.ContainsFunc(editable, func(p string) bool { return p == at || strings.HasPrefix(at, p+"/") || strings.HasPrefix(p, at+"/") }) {
			f.fields = append(f.fields, leaf)
		} else {
			f.locked = append(f.locked, leaf)
		}
	}
	return f
}

func fieldID(i int) string { return "f" + strconv.Itoa(i) }

// leaves returns the fields of a form that have an input. Lists and variants are JSON.
func leaves(f *schemaform.Field) (all []*schemaform.Field) {
	switch f.Kind {
	case schemaform.Object:
		for _, child := range f.Fields {
			all = append(all, leaves(child)...)
		}
		return all
	case schemaform.List, schemaform.OneOf:
		f.AsJSON()
	default:
	}
	return append(all, f)
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
		return nil, errNoForm
	}
	// hidden characters cannot be edited safely in Slack
	if sanitize.Text(value) != value {
		return nil, errNoForm
	}
	text.InitialValue, text.MaxLength = value, maxInput
	text.Multiline = f.Kind == schemaform.JSON || strings.Contains(value, "\n")
	return text, nil
}

func selectInput(f *schemaform.Field) (slack.BlockElement, error) {
	if len(f.Options) == 0 || len(f.Options) > maxOptions {
		return nil, errNoForm
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

// editForm returns the form for the arguments of an approval.
func editForm(r api.Request) (*form, error) {
	var approval fermata.ApprovalRequest
	if r.Kind != fermata.Approval.Name() || json.Unmarshal(r.Data, &approval) != nil || approval.Args == nil || approval.Fixed || len(r.Masked) > 0 {
		return nil, errNoForm
	}
	args, editable, codes := approval.Args, []string(nil), []string(nil)
	if a := r.Activity; a != nil {
		if a.Policy != "" {
			editable = slices.Concat([]string{}, a.Editable)
		}
		if codes = a.EditReasons; a.Edit != nil {
			args = a.Edit.Args
		}
	}
	f := newForm(schemaform.New(approval.ArgsSchema, args), editable)
	f.codes = codes
	return f, nil
}

// answerForm returns the form for the answer to a question.
func answerForm(r api.Request) (*form, error) {
	if len(r.AnswerSchema) == 0 {
		return nil, errNoForm
	}
	return newForm(schemaform.New(r.AnswerSchema, nil), nil), nil
}
