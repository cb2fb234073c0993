// Package kinds knows the kinds of questions that only Fermata itself asks.
package kinds

import (
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
)

var builtIn = []string{fermata.Approval.Name(), fermata.EffectInDoubt.Name(), "approval-gate", "hold", "tool-response", "tool-follow-up", "limit-reached"}

// BuiltIn returns the kind of Fermata that a kind is or looks like; "" for other kinds. People
// know these kinds, so an agent elsewhere must not ask its own questions with them.
func BuiltIn(kind string) string {
	same := func(name string) bool { return foldKind(name) == foldKind(kind) }
	if n := slices.IndexFunc(builtIn, same); n >= 0 {
		return builtIn[n]
	}
	return ""
}

// foldKind returns the letters and digits of a kind in lower case: kinds with the same ones look
// alike.
func foldKind(kind string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, kind)
}
