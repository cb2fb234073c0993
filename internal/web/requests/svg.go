package requests

import (
	"html/template"
	"regexp"
	"strings"
)

var svgStyle = regexp.MustCompile(`(?s)<style>.*?</style>\s*`)

// inlineSVG returns a drawing for a page. Its own styles would be blocked by the content security
// policy; static/components.css has them.
func inlineSVG(svg string) template.HTML {
	svg = svgStyle.ReplaceAllString(svg, "")
	return template.HTML(strings.Replace(svg, "<svg ", `<svg class="graph" `, 1)) // package drawing escapes names
}
