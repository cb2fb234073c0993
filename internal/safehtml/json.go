package safehtml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"
)

// Labels are the translated words in a rendered JSON value.
type Labels struct {
	// Fold is the label of a folded value; size is one of the counts below.
	Fold func(size string) string
	// Characters and Items count.
	Characters, Items func(n int) string
	// Empty is shown for an empty text.
	Empty string
}

// The size from which a value is folded, and the depth from which it is shown as text.
const (
	foldText  = 600
	foldLines = 16
	foldItems = 60
	foldShown = 160
	maxDepth  = 10
)

// Node is a JSON value as it was written: members in order, numbers with all digits.
type Node struct {
	Kind    Kind
	Text    string // a decoded string, or the literal
	Members []Member
	Items   []Node
	// Raw is the value as it was written.
	Raw json.RawMessage
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value Node
}

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of JSON values.
const (
	Literal Kind = iota // a number, true, false, null
	String
	Object
	List
)

// Parse parses a JSON value.
func Parse(data json.RawMessage) (Node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := parseNode(d, data)
	if err != nil {
		return n, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return n, errors.New("untrusted: trailing data after the value")
	}
	return n, nil
}

func parseNode(d *json.Decoder, data []byte) (n Node, err error) {
	start := d.InputOffset()
	defer func() {
		if err == nil {
			n.Raw = json.RawMessage(bytes.TrimLeft(data[start:d.InputOffset()], " \t\r\n,:"))
		}
	}()
	token, err := d.Token()
	if err != nil {
		return n, err
	}
	switch t := token.(type) {
	case json.Delim:
		n.Kind = List
		if t == '{' {
			n.Kind = Object
		}
		for d.More() {
			var m Member
			if n.Kind == Object {
				name, err := d.Token()
				if err != nil {
					return n, err
				}
				m.Name, _ = name.(string)
			}
			if m.Value, err = parseNode(d, data); err != nil {
				return n, err
			}
			if n.Kind == Object {
				n.Members = append(n.Members, m)
			} else {
				n.Items = append(n.Items, m.Value)
			}
		}
		_, err = d.Token() // the closing bracket
		return n, err
	case string:
		return Node{Kind: String, Text: t}, nil
	case json.Number:
		return Node{Text: t.String()}, nil
	case bool:
		return Node{Text: fmt.Sprint(t)}, nil
	}
	return Node{Text: "null"}, nil
}

// JSON renders a JSON value verbatim: objects and lists as nested lists, long values folded.
func JSON(data json.RawMessage, labels Labels) template.HTML {
	n, err := Parse(data)
	if err != nil {
		n = Node{Kind: String, Text: string(data)}
	}
	return n.HTML(labels)
}

// HTML renders the value; see [JSON].
func (n Node) HTML(labels Labels) template.HTML {
	var b strings.Builder
	n.write(&b, labels, 0)
	return template.HTML(b.String())
}

// Flags counts the flagged characters in all names and texts of the value.
func (n Node) Flags() (count int) {
	if n.Kind == String {
		return Flags(n.Text)
	}
	for _, m := range n.Members {
		count += Flags(m.Name) + m.Value.Flags()
	}
	for _, item := range n.Items {
		count += item.Flags()
	}
	return count
}

func (n Node) write(b *strings.Builder, labels Labels, depth int) {
	switch {
	case n.Kind == String:
		n.writeString(b, labels)
	case n.Kind == Literal:
		b.WriteString(`<span class="lit">`)
		write(b, n.Text, false)
		b.WriteString(`</span>`)
	case len(n.Members)+len(n.Items) == 0 || depth >= maxDepth:
		b.WriteString(`<span class="lit">`)
		write(b, string(n.Raw), true)
		b.WriteString(`</span>`)
	default:
		n.writeList(b, labels, depth)
	}
}

func (n Node) writeList(b *strings.Builder, labels Labels, depth int) {
	count := len(n.Members) + len(n.Items)
	fold := count > foldItems
	if fold {
		fmt.Fprintf(b, `<details class="fold"><summary>%s</summary>`, template.HTMLEscapeString(labels.Fold(labels.Items(count))))
	}
	if n.Kind == Object {
		b.WriteString(`<dl class="tree">`)
		for _, m := range n.Members {
			b.WriteString("<dt>")
			write(b, m.Name, false)
			b.WriteString("</dt><dd>")
			m.Value.write(b, labels, depth+1)
			b.WriteString("</dd>")
		}
		b.WriteString("</dl>")
	} else {
		b.WriteString(`<ol class="tree">`)
		for _, item := range n.Items {
			b.WriteString("<li>")
			item.write(b, labels, depth+1)
			b.WriteString("</li>")
		}
		b.WriteString("</ol>")
	}
	if fold {
		b.WriteString("</details>")
	}
}

func (n Node) writeString(b *strings.Builder, labels Labels) {
	switch {
	case n.Text == "":
		fmt.Fprintf(b, `<span class="str none">%s</span>`, template.HTMLEscapeString(labels.Empty))
	case utf8.RuneCountInString(n.Text) > foldText || strings.Count(n.Text, "\n") > foldLines:
		b.WriteString(`<details class="fold"><summary><span class="str">`)
		write(b, string([]rune(n.Text)[:min(foldShown, utf8.RuneCountInString(n.Text))]), false)
		fmt.Fprintf(b, `…</span> <b>%s</b></summary><span class="str">`, template.HTMLEscapeString(labels.Fold(labels.Characters(utf8.RuneCountInString(n.Text)))))
		write(b, n.Text, true)
		b.WriteString(`</span></details>`)
	default:
		b.WriteString(`<span class="str">`)
		quote := looksLikeLiteral(n.Text)
		if quote {
			b.WriteString(`<span class="q">&#34;</span>`)
		}
		write(b, n.Text, true)
		if quote {
			b.WriteString(`<span class="q">&#34;</span>`)
		}
		b.WriteString(`</span>`)
	}
}

// looksLikeLiteral reports whether a text could be mistaken for a number, true, false or null, or
// begins or ends with a space.
func looksLikeLiteral(text string) bool {
	return strings.TrimSpace(text) != text || json.Valid([]byte(text))
}
