package email

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// signInRisk is the risk from which a link does not decide, unless the rules have a min_auth that
// permits it.
const signInRisk = 2

// needsSignIn reports whether a decision needs more than a link, which proves only that its sender
// can read the mailbox.
func needsSignIn(risk int, minAuth requirement.Auth) bool {
	if minAuth != requirement.AuthNone {
		return !requirement.AuthLinked.AtLeast(minAuth)
	}
	return risk >= signInRisk
}

// choice is an action of a request on the page.
type choice struct {
	api.Action
	// Key identifies the action in the form that the page sends.
	Key string
	// Inputs are those of the form of the action. InInbox says that the page cannot show it.
	Inputs  []input
	InInbox bool

	form *schemaform.Field
}

// input is one value of a form.
type input struct {
	*schemaform.Field
	Error string
}

// errInInbox says that an action needs a form that the page cannot show.
var errInInbox = errors.New("this answer can only be given in the inbox")

// newChoice returns an action with its form. sent is what was typed before, or nil.
func newChoice(a api.Action, activity *api.Activity, sent url.Values) choice {
	c := choice{Action: a, Key: a.Name}
	if a.Name == nameRespond && a.Answer != nil {
		c.Key += " " + string(a.Answer)
	}
	if a.Name == nameEdit || a.Name == nameApprove && activity != nil && activity.Confirm != "" {
		c.InInbox = true // an edit can raise the risk, and the page has no input for the typed name
		return c
	}
	if a.Form == nil {
		return c
	}
	c.form = schemaform.New(a.Form, a.Value)
	c.InInbox = !c.addInputs(c.form) || len(c.Inputs) == 0
	for _, in := range c.Inputs {
		fill(in.Field, sent)
	}
	return c
}

// addInputs adds the inputs of a field. It reports false if the page cannot show the field.
func (c *choice) addInputs(f *schemaform.Field) bool {
	at := f.Pointer()
	if c.Editable != nil && !slices.ContainsFunc(c.Editable, func(p string) bool {
		return p == at || strings.HasPrefix(at, p+"/") || strings.HasPrefix(p, at+"/")
	}) {
		return true
	}
	switch f.Kind {
	case schemaform.Object:
		return !slices.ContainsFunc(f.Fields, func(child *schemaform.Field) bool { return !c.addInputs(child) })
	case schemaform.List: // of at most one item
		if f.Limits.MaxItems == nil || *f.Limits.MaxItems != 1 || f.Original() != nil {
			return false
		}
		item := f.AddItem()
		return item != nil && c.addInputs(item)
	case schemaform.Text, schemaform.Integer, schemaform.Number, schemaform.Boolean, schemaform.Choice:
		// an input shows hidden characters as nothing
		if safehtml.Flags(f.Text) > 0 {
			return false
		}
		c.Inputs = append(c.Inputs, input{Field: f})
		return true
	}
	return false
}

// ID is the id of an input on the page.
func (c choice) ID(i int) string {
	sum := strings.NewReplacer("/", "-", "~", "-").Replace(c.Inputs[i].Pointer())
	return c.Name + sum
}

// InputName is the name of an input in a form.
func (f input) InputName() string { return "v" + f.Pointer() }

// Label is the name of the value.
func (f input) Label() string {
	switch {
	case f.Title != "":
		return safehtml.Plain(f.Title)
	case f.Name != "":
		return safehtml.Plain(f.Name)
	}
	parts := strings.Split(f.Pointer(), "/") // of a list of at most one item
	if len(parts) > 2 {
		return safehtml.Plain(parts[len(parts)-2])
	}
	return "Answer"
}

// Selects reports whether the input is a list of options.
func (f input) Selects() bool {
	return f.Kind == schemaform.Choice || f.Kind == schemaform.Boolean
}

// Long reports whether the text may have several lines.
func (f input) Long() bool {
	return f.Kind == schemaform.Text && (strings.Contains(f.Text, "\n") || f.Limits.MaxLength == nil || *f.Limits.MaxLength > 200)
}

// OptionText is the text of an option.
func (f input) OptionText(o schemaform.Option) string {
	var text string
	switch {
	case o.Title != "":
		text = o.Title
	case json.Unmarshal(o.Value, &text) == nil && text != "":
	case string(o.Value) == "true":
		text = "yes"
	case string(o.Value) == "false":
		text = "no"
	default:
		text = string(o.Value)
	}
	return safehtml.Plain(text)
}

// fill sets a value to what a browser sent.
func fill(f *schemaform.Field, sent url.Values) {
	name := "v" + f.Pointer()
	if !sent.Has(name) {
		return
	}
	text := strings.ReplaceAll(sent.Get(name), "\r\n", "\n")
	if f.Kind != schemaform.Choice && f.Kind != schemaform.Boolean {
		if f.Null && text == "" {
			return
		}
		f.Text, f.Null = text, false
		return
	}
	f.Selected = schemaform.Unset
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(f.Options) {
		f.Selected, f.Null = i, false
	}
}

// answer returns the answer of the action with the values of its form. The error may be a
// [schemaform.Errors].
func (c choice) answer() (json.RawMessage, error) {
	switch {
	case c.InInbox:
		return nil, errInInbox
	case c.form == nil:
		return c.Answer, nil
	case c.Optional && !slices.ContainsFunc(c.Inputs, func(f input) bool { return f.Text != "" || f.Selected != schemaform.Unset }):
		return c.Answer, nil
	}
	dropEmptyItems(c.form)
	value, err := c.form.Value()
	if err != nil {
		return nil, err
	}
	answer, isObject := schemaform.ParseObject(c.Answer)
	members, _ := schemaform.ParseObject(value)
	switch {
	case c.At != "":
		return answer.With(schemaform.Member{Name: c.At, Value: value}).JSON(), nil
	case isObject:
		return answer.With(members...).JSON(), nil
	}
	return value, nil
}

// dropEmptyItems removes items without input from lists that are not required.
func dropEmptyItems(f *schemaform.Field) {
	if f.Kind == schemaform.List && !f.Required && len(f.Fields) == 1 && f.Fields[0].Text == "" && f.Fields[0].Selected == schemaform.Unset {
		f.RemoveItem(0)
	}
	for _, child := range f.Fields {
		dropEmptyItems(child)
	}
}

// withErrors returns the action with what is wrong with its form.
func (c choice) withErrors(err error) choice {
	all, _ := errors.AsType[schemaform.Errors](err)
	c.Inputs = slices.Clone(c.Inputs)
	for i, f := range c.Inputs {
		c.Inputs[i].Error = all.At(f.Pointer())
	}
	return c
}

// HasErrors reports whether something is wrong with the form.
func (c choice) HasErrors() bool {
	return slices.ContainsFunc(c.Inputs, func(f input) bool { return f.Error != "" })
}
