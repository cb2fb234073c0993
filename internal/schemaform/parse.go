package schemaform

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxFields bounds the fields of a form: a schema may come from an agent. The parts beyond it
// become JSON fields.
const maxFields = 500

// form is what the fields of a form share.
type form struct {
	root json.RawMessage // the whole schema
	defs Members         // $defs and definitions of the root
	left int             // how many fields may still be added
}

func (m *form) take(f *Field) *Field {
	m.left--
	return f
}

// New returns the field for a value of a schema. The value is the initial one; nil means that there
// is none. New does not fail: a schema that it cannot use becomes a JSON field.
func New(schema, value json.RawMessage) *Field {
	m := &form{root: schema, left: maxFields}
	members, _ := ParseObject(schema)
	for _, name := range []string{"$defs", "definitions"} {
		if defs := members.Get(name); defs != nil {
			m.defs = append(m.defs, Member{name, defs})
		}
	}
	root := m.field(nil, "", schema, nil)
	root.Required = true
	if value == nil {
		return root
	}
	if members, ok := ParseObject(value); ok && root.Kind == JSON && len(members) > 0 && isAny(schema) {
		root.Kind = Object // a field for each member is easier to edit than one text
	}
	root.SetInitial(value)
	return root
}

// isAny reports whether a schema does not say anything about the members of a value.
func isAny(schema json.RawMessage) bool {
	k := parseKeywords(schema)
	return k.Ref == "" && len(k.OneOf)+len(k.AnyOf)+len(k.AllOf) == 0
}

// keywords is the supported part of a schema.
type keywords struct {
	Ref         string            `json:"$ref"`
	Type        json.RawMessage   `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"`
	Format      string            `json:"format"`

	Minimum          json.Number `json:"minimum"`
	Maximum          json.Number `json:"maximum"`
	ExclusiveMinimum json.Number `json:"exclusiveMinimum"`
	ExclusiveMaximum json.Number `json:"exclusiveMaximum"`
	MinLength        *int        `json:"minLength"`
	MaxLength        *int        `json:"maxLength"`
	MinItems         *int        `json:"minItems"`
	MaxItems         *int        `json:"maxItems"`
	Pattern          string      `json:"pattern"`

	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Items       json.RawMessage   `json:"items"`
	PrefixItems json.RawMessage   `json:"prefixItems"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	AllOf       []json.RawMessage `json:"allOf"`

	orNull bool // a wrapper allows null
}

// parseKeywords returns the zero value for true, and for a schema with unexpected types.
func parseKeywords(raw json.RawMessage) keywords {
	var k keywords
	if json.Unmarshal(raw, &k) != nil {
		return keywords{}
	}
	return k
}

// types returns the allowed types without null.
func (k keywords) types() (types []string, nullable bool) {
	var one string
	if json.Unmarshal(k.Type, &one) == nil && one != "" {
		return []string{one}, false
	}
	var several []string
	if json.Unmarshal(k.Type, &several) != nil {
		return nil, false
	}
	types = slices.DeleteFunc(slices.Clone(several), func(t string) bool { return t == "null" })
	return types, len(types) < len(several)
}

// resolve follows references inside the schema and wrappers with a single schema. It keeps the
// first title, description and default on the way, and returns the references that it followed. It
// returns false for an external reference and for one that leads to itself.
func (m *form) resolve(raw json.RawMessage, refs []string) (keywords, []string, bool) {
	k := parseKeywords(raw)
	outer := k
	nullable := false
	for {
		var next json.RawMessage
		switch alternatives := slices.Concat(k.OneOf, k.AnyOf); {
		case k.Ref != "":
			if slices.Contains(refs, k.Ref) {
				return k, refs, false
			}
			refs = append(slices.Clip(refs), k.Ref)
			if next = m.lookup(k.Ref); next == nil {
				return k, refs, false
			}
		case len(k.AllOf) == 1 && k.Type == nil && k.Properties == nil:
			next = k.AllOf[0]
		case len(alternatives) == 2 && k.Type == nil && slices.ContainsFunc(alternatives, isNull):
			alternatives = slices.DeleteFunc(alternatives, isNull)
			if len(alternatives) == 1 && parseKeywords(alternatives[0]).Const == nil {
				nullable, next = true, alternatives[0]
			}
		}
		if next == nil {
			break
		}
		k = parseKeywords(next)
		outer.Title, outer.Description = first(outer.Title, k.Title), first(outer.Description, k.Description)
		if outer.Default == nil {
			outer.Default = k.Default
		}
	}
	k.Title, k.Description, k.Default = outer.Title, outer.Description, outer.Default
	k.orNull = nullable
	return k, refs, true
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func isNull(raw json.RawMessage) bool {
	k := parseKeywords(raw)
	types, nullable := k.types()
	return string(k.Const) == "null" || nullable && len(types) == 0 || len(types) == 1 && types[0] == "null"
}

// lookup returns the definition of a reference; nil if it is not a local definition.
func (m *form) lookup(ref string) json.RawMessage {
	for _, defs := range m.defs {
		if name, ok := strings.CutPrefix(ref, "#/"+defs.Name+"/"); ok {
			all, _ := ParseObject(defs.Value)
			return all.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
	}
	return nil
}

// field returns the field for a schema. The references lead from the root to it.
func (m *form) field(parent *Field, name string, raw json.RawMessage, refs []string) *Field {
	f := m.take(&Field{Name: name, Kind: JSON, Selected: Unset, form: m, parent: parent, schema: raw})
	defer func() { f.initial = f.input() }()
	k, refs, ok := m.resolve(raw, refs)
	f.refs = refs
	f.Title, f.Description, f.Default, f.Format = k.Title, k.Description, k.Default, k.Format
	if !ok {
		return f
	}
	f.Limits = Limits{k.Minimum, k.Maximum, k.ExclusiveMinimum, k.ExclusiveMaximum, k.MinLength, k.MaxLength, k.MinItems, k.MaxItems, k.Pattern}
	types, nullable := k.types()
	f.Nullable = nullable || k.orNull
	properties, _ := ParseObject(k.Properties)
	switch {
	case k.Const != nil:
		f.Kind, f.Options = Choice, []Option{{Value: k.Const}}
	case k.Enum != nil:
		f.Kind = Choice
		for _, value := range k.Enum {
			f.Options = append(f.Options, Option{Value: value})
		}
	case len(k.OneOf)+len(k.AnyOf) > 0:
		f.setVariants(k, properties)
	case len(k.AllOf) > 0: // a merge of several schemas has no fields of its own
	case len(properties) > 0 && (len(types) == 0 || len(types) == 1 && types[0] == "object"):
		f.setProperties(properties, k.Required)
	case len(types) == 1:
		f.setType(types[0], k)
	}
	return f
}

func (f *Field) setType(name string, k keywords) {
	switch name {
	case "boolean":
		f.Kind, f.Options = Boolean, []Option{{Value: json.RawMessage("true")}, {Value: json.RawMessage("false")}}
	case "string":
		f.Kind = Text
	case "integer":
		f.Kind = Integer
	case "number":
		f.Kind = Number
	case "array":
		if k.PrefixItems == nil && isSchema(k.Items) {
			f.Kind = List
		}
	}
}

// isSchema reports whether items is a schema and not missing or a list of schemas.
func isSchema(items json.RawMessage) bool {
	_, isObject := ParseObject(items)
	return isObject
}

func (f *Field) setProperties(properties Members, required []string) {
	if len(properties) > f.form.left {
		return
	}
	f.Kind = Object
	for _, p := range properties {
		child := f.form.field(f, p.Name, p.Value, f.refs)
		child.Required = slices.Contains(required, p.Name)
		f.Fields = append(f.Fields, child)
	}
}

// setVariants makes the field a choice of values if each alternative is a constant, else a choice
// of schemas. Alternatives that add to other members of the schema stay JSON.
func (f *Field) setVariants(k keywords, properties Members) {
	variants := slices.Concat(k.OneOf, k.AnyOf)
	if len(properties) > 0 || len(k.OneOf) > 0 && len(k.AnyOf) > 0 || len(k.AllOf) > 0 || len(variants) > f.form.left {
		return
	}
	var options []Option
	for _, raw := range variants {
		if v := parseKeywords(raw); v.Const != nil {
			options = append(options, Option{v.Const, v.Title})
		}
	}
	if len(options) == len(variants) {
		f.Kind, f.Options = Choice, options
		return
	}
	f.Kind = OneOf
	for _, raw := range variants {
		child := f.form.field(f, f.Name, raw, f.refs)
		child.Required = true
		child.fillConstants()
		f.Fields = append(f.Fields, child)
	}
}

// fillConstants selects the members of a variant that tell it from the others: the choice of the
// variant is their choice.
func (f *Field) fillConstants() {
	for _, child := range f.Fields {
		if child.Kind == Choice && len(child.Options) == 1 && strings.HasPrefix(string(child.Options[0].Value), `"`) {
			child.Selected = 0
			child.initial = child.input()
		}
	}
}

// newItem returns an empty item of a list.
func (f *Field) newItem() *Field {
	k, _, _ := f.form.resolve(f.schema, f.refs[:0:0])
	item := f.form.field(f, "", k.Items, f.refs)
	item.Required = true
	return item
}
