package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/policy/internal/yamldoc"
)

// How many characters names may have. They stand in requests, in the audit log and on the pages of those who are asked; more is a mistake.
const (
	maxID     = 100  // of a rule
	maxName   = 256  // of a group, a person, a route, something to show, a version
	maxPath   = 1024 // of an argument
	maxReason = 2000
)

// idPunctuation are what an id may have beside letters and digits. A space is none of them: lists of ids are written with spaces.
const idPunctuation = "-_.:/@"

// checkID refuses an id that cannot be told from others when it is read, or is more than a name.
func checkID(node yamldoc.Node, id string) {
	if !checkLength(node, "the id", id, maxID) {
		return
	}
	for _, c := range id {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune(idPunctuation, c) {
			node.Reportf("the id has %q (%U) in it; letters, digits and %s are possible", c, c, strings.Join(strings.Split(idPunctuation, ""), " "))
			return
		}
	}
}

// checkLabel refuses a name that people cannot read as it is: what is no character that is seen, or a space where nobody sees it.
func checkLabel(node yamldoc.Node, what, name string) {
	if !checkLength(node, what, name, maxName) {
		return
	}
	if name != strings.TrimSpace(name) {
		node.Reportf("%s %q begins or ends with a space", what, name)
		return
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			node.Reportf("%s %q has %U in it, which nobody sees", what, name, c)
			return
		}
	}
}

func checkLength(node yamldoc.Node, what, text string, most int) bool {
	n := utf8.RuneCountInString(text)
	if n > most {
		node.Reportf("%s %q has %d characters; at most %d are possible", what, truncate(text), n, most)
	}
	return n <= most
}

// truncate is so much of a text that it can stand in a message.
func truncate(text string) string {
	n := 0
	for at := range text {
		if n++; n > maxID {
			return text[:at] + "…"
		}
	}
	return text
}
