package drawing

import (
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/sanitize"
)

// label returns the text of a box: the name, and additional information.
func (n *Node) label() (name, more string) {
	if n.Kind == KindStart || n.Kind == KindEnd {
		return n.Kind, ""
	}
	var words []string
	if n.Waiting {
		words = append(words, "waits")
	}
	if n.Kind == KindEach {
		words = append(words, "for each item")
	}
	for _, when := range n.Held {
		words = append(words, "hold "+sanitize.Line(when))
	}
	return sanitize.Line(n.ID), strings.Join(words, ", ")
}

// description returns the label as one line.
func (n *Node) description() string {
	name, more := n.label()
	if more == "" {
		return name
	}
	return name + " (" + more + ")"
}

// Mermaid returns the drawing as a Mermaid flowchart.
func (d *Drawing) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	waiting := d.mermaid(&b, "n", "  ")
	if len(waiting) > 0 {
		b.WriteString("  classDef waiting fill:#fde68a,stroke:#b45309,stroke-width:3px\n")
		fmt.Fprintf(&b, "  class %s waiting\n", strings.Join(waiting, ","))
	}
	return b.String()
}

// mermaid writes one graph, with the prefix for node ids, and returns the ids of waiting nodes.
func (d *Drawing) mermaid(b *strings.Builder, prefix, indent string) (waiting []string) {
	ids := make(map[string]string, len(d.Nodes))
	for i, n := range d.Nodes {
		id := fmt.Sprintf("%s%d", prefix, i)
		ids[n.ID] = id
		if n.Waiting {
			waiting = append(waiting, id)
		}
		switch {
		case n.Inner != nil:
			fmt.Fprintf(b, "%ssubgraph %s[%s]\n", indent, id, n.quoted())
			waiting = append(waiting, n.Inner.mermaid(b, id+"_", indent+"  ")...)
			fmt.Fprintf(b, "%send\n", indent)
		case n.Kind == KindStart || n.Kind == KindEnd:
			// without quotes, "end" would end a subgraph
			fmt.Fprintf(b, "%s%s((%s))\n", indent, id, n.quoted())
		case n.Kind == KindEach:
			fmt.Fprintf(b, "%s%s[[%s]]\n", indent, id, n.quoted())
		default:
			fmt.Fprintf(b, "%s%s[%s]\n", indent, id, n.quoted())
		}
	}
	for _, e := range d.Edges {
		if ids[e.From] == "" || ids[e.To] == "" { // from a server that does not send its target
			continue
		}
		arrow := "-->"
		if e.Branch {
			arrow = "-.->"
		}
		fmt.Fprintf(b, "%s%s %s %s\n", indent, ids[e.From], arrow, ids[e.To])
	}
	return waiting
}

// quoted returns the text of the box in quotes and escaped, including directives, %%{…}%%, which
// Mermaid parses before quotes.
func (n *Node) quoted() string {
	plain := *n
	plain.Waiting = false // the colour shows it
	text := plain.description()
	replacer := strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "`", "#96;", "%", "#37;")
	return `"` + replacer.Replace(text) + `"`
}

// Text returns the drawing as lines for a terminal: each node and its targets.
func (d *Drawing) Text() string {
	var b strings.Builder
	d.text(&b, "")
	return b.String()
}

func (d *Drawing) text(b *strings.Builder, indent string) {
	names := make(map[string]string, len(d.Nodes))
	for _, n := range d.Nodes {
		names[n.ID], _ = n.label()
	}
	for _, n := range d.Nodes {
		if n.Kind == KindEnd {
			continue
		}
		var always, perhaps []string
		for _, e := range d.Edges {
			switch {
			case e.From != n.ID || names[e.To] == "":
			case e.Branch:
				perhaps = append(perhaps, names[e.To])
			default:
				always = append(always, names[e.To])
			}
		}
		if len(perhaps) > 0 {
			always = append(always, strings.Join(perhaps, " or "))
		}
		fmt.Fprintf(b, "%s%s → %s\n", indent, n.description(), strings.Join(always, ", "))
		if n.Inner != nil {
			n.Inner.text(b, indent+"    ")
		}
	}
}
