package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/yamldoc"
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
	checkCharacters(node, id)
}

// checkCharacters checks the length and the characters of an id or a code.
func checkCharacters(node yamldoc.Node, id string) {
	if !checkLength(node, id, maxID) {
		return
	}
	for _, c := range id {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune(idPunctuation, c) {
			node.Reportf("%q contains %q (%U); use letters, digits and %s", truncate(id), c, c, strings.Join(strings.Split(idPunctuation, ""), " "))
			return
		}
	}
}

// checkLabel rejects names with invisible characters or surrounding spaces.
func checkLabel(node yamldoc.Node, name string) {
	if !checkLength(node, name, maxName) {
		return
	}
	if name != strings.TrimSpace(name) {
		node.Reportf("%q begins or ends with a space", name)
		return
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			node.Reportf("%q contains %U, which is not printable", name, c)
			return
		}
	}
}

func checkLength(node yamldoc.Node, text string, most int) bool {
	n := utf8.RuneCountInString(text)
	if n > most {
		node.Reportf("%q has %d characters; the maximum is %d", truncate(text), n, most)
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
