package drawing

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/sanitize"
)

// SVG returns the drawing as a standalone image. It supports light and dark themes, and describes
// in text what it shows in colours.
func (d *Drawing) SVG() string { return d.document(svgStyle) }

// InlineSVG returns the drawing as an element for an HTML page that has the styles: of class f, and
// inside it in (a graph in a node), w (waiting), br (branch), tip (arrow head) and h (small text).
func (d *Drawing) InlineSVG() string { return d.document("") }

func (d *Drawing) document(style string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="%s">`+"\n", d.Width, d.Height, escapeXML(d.description()))
	b.WriteString(style)
	d.svg(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// description describes the image in a sentence, for accessibility.
func (d *Drawing) description() string {
	waiting := d.waiting()
	if len(waiting) == 0 {
		return "The graph " + sanitize.Line(d.Graph)
	}
	return fmt.Sprintf("The graph %s, which waits at %s", sanitize.Line(d.Graph), strings.Join(waiting, " and "))
}

// waiting returns the names of the innermost nodes where a run waits.
func (d *Drawing) waiting() (names []string) {
	for _, n := range d.Nodes {
		if !n.Waiting {
			continue
		}
		var inside []string
		if n.Inner != nil {
			inside = n.Inner.waiting()
		}
		if len(inside) == 0 {
			inside = []string{sanitize.Line(n.ID)}
		}
		names = append(names, inside...)
	}
	return names
}

const svgStyle = `<style>
.f{font:14px system-ui,sans-serif;fill:#1f2937}.f .h{font-size:11px;fill:#4b5563}
.f rect{fill:#fff;stroke:#6b7280;stroke-width:1.5}.f .in{fill:#f9fafb}.f .w{fill:#fde68a;stroke:#b45309;stroke-width:3}.f .in.w{fill:#fef3c7}
.f path{fill:none;stroke:#6b7280;stroke-width:1.5}.f .br{stroke-dasharray:5 4}.f .tip{fill:#6b7280;stroke:none}
@media (prefers-color-scheme:dark){.f{fill:#f3f4f6}.f .h{fill:#d1d5db}.f rect{fill:#1f2937;stroke:#9ca3af}.f .in{fill:#111827}.f .w{fill:#78350f;stroke:#fbbf24}.f .in.w{fill:#451a03}.f path{stroke:#9ca3af}.f .tip{fill:#9ca3af}}
</style>
`

// svg draws one graph at its origin.
func (d *Drawing) svg(b *strings.Builder) {
	b.WriteString(`<g class="f">` + "\n")
	for _, e := range d.Edges {
		e.svg(b)
	}
	for _, n := range d.Nodes {
		n.svg(b)
	}
	b.WriteString("</g>\n")
}

func (e *Edge) svg(b *strings.Builder) {
	if len(e.Points) == 0 { // from a server that does not send them
		return
	}
	class := ""
	if e.Branch {
		class = ` class="br"`
	}
	var path strings.Builder
	for i, p := range e.Points {
		fmt.Fprintf(&path, "%c%d %d", "ML"[min(i, 1)], p[0], p[1])
	}
	end := e.Points[len(e.Points)-1] // every arrow arrives from above
	fmt.Fprintf(b, `<path%s d="%s"/><path class="tip" d="M%d %dl-5 -9h10z"/>`+"\n", class, path.String(), end[0], end[1])
}

func (n *Node) svg(b *strings.Builder) {
	class, round := "", 6
	switch {
	case n.Kind == KindStart || n.Kind == KindEnd:
		round = n.Height / 2
	case n.Inner != nil:
		class = "in "
	}
	if n.Waiting {
		class += "w"
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, escapeXML(n.description()), strings.TrimSpace(class), n.X, n.Y, n.Width, n.Height, round)
	if n.Kind == KindEach { // a second line on each side marks a list
		fmt.Fprintf(b, `<path d="M%d %dv%dM%d %[2]dv%[3]d"/>`, n.X+6, n.Y, n.Height, n.X+n.Width-6)
	}
	name, more := n.label()
	y := n.Y + n.Height/2 + 5
	switch {
	case n.Inner != nil:
		name, more, y = n.description(), "", n.Y+19
	case more != "":
		y = n.Y + 17
	}
	write := func(class, text string, y, most int) {
		fmt.Fprintf(b, `<text class="%s" x="%d" y="%d" text-anchor="middle">%s</text>`, class, n.X+n.Width/2, y, escapeXML(truncate(text, most)))
	}
	write("n", name, y, (n.Width-letterWidth)/letterWidth)
	if more != "" {
		write("h", more, y+15, (n.Width-letterWidth)/smallLetterWidth)
	}
	b.WriteString("</g>\n")
	if n.Inner != nil {
		fmt.Fprintf(b, `<g transform="translate(%d %d)">`+"\n", n.X+InsetX, n.Y+InsetY)
		n.Inner.svg(b)
		b.WriteString("</g>\n")
	}
}

// truncate shortens a text to this many letters. The title has the full text.
func truncate(text string, most int) string {
	if textWidth(text) <= most {
		return text
	}
	end, left := 0, most-1
	for i, r := range text {
		if left -= runeWidth(r); left < 0 {
			end = i
			break
		}
	}
	return text[:end] + "…"
}

// escapeXML escapes a text and replaces characters that XML cannot represent.
func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder never fails
	return b.String()
}
