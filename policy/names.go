package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/policy/yamldoc"
)

// Maximum lengths of names, in characters. Names are part of requests, audit records and pages.
const (
	maxID     = 100  // of a rule
	maxName   = 256  // of a group, a person, a route, a version
	maxPath   = 1024 // of an argument
	maxReason = 2000
)

// idPunctuation lists the characters that an id may have in addition to letters and digits. Spaces
// are not allowed, because lists of ids are separated by spaces.
const idPunctuation = "-_.:/@"

// checkID rejects ids with characters that are hard to distinguish or that are not allowed.
func checkID(node yamldoc.Node, id string) {
	checkCharacters(node, "the id", id)
}

// checkCharacters checks the length and the characters of an id or a code.
func checkCharacters(node yamldoc.Node, what, id string) {
	if !checkLength(node, what, id, maxID) {
		return
	}
	for _, c := range id {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune(idPunctuation, c) {
			node.Reportf("%s contains %q (%U); use letters, digits and %s", what, c, c, strings.Join(strings.Split(idPunctuation, ""), " "))
			return
		}
	}
}

// checkLabel rejects names with invisible characters or surrounding spaces.
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
			node.Reportf("%s %q contains %U, which is not printable", what, name, c)
			return
		}
	}
}

func checkLength(node yamldoc.Node, what, text string, most int) bool {
	n := utf8.RuneCountInString(text)
	if n > most {
		node.Reportf("%s %q has %d characters; the maximum is %d", what, truncate(text), n, most)
	}
	return n <= most
}

// truncate shortens a text for a message.
func truncate(text string) string {
	n := 0
	for at := range text {
		if n++; n > maxID {
			return text[:at] + "…"
		}
	}
	return text
}
