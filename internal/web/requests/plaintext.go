package requests

import (
	"html"
	"regexp"
	"strings"
)

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	blocks = regexp.MustCompile(`</?(?:p|div|li|dt|dd|tr|h[1-6]|summary|section|pre|ol|ul|dl|table)\b[^>]*>`)
)

// plainText returns the text of markup that this package rendered: one line per block, without
// empty lines.
func plainText(markup string) string {
	text := html.UnescapeString(tags.ReplaceAllString(blocks.ReplaceAllString(markup, "\n"), ""))
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
