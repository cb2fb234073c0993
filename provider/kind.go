package provider

import (
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
)

// builtInKinds are the kinds that only Fermata itself asks.
var builtInKinds = []string{fermata.Approval.Name(), fermata.EffectInDoubt.Name(), "approval-gate", "hold", "tool-response", "tool-follow-up", "limit-reached"}

// BuiltInKind returns the kind of Fermata that a kind is or looks like; "" for other kinds. People
// know these kinds, so an agent elsewhere must not ask its own questions with them.
func BuiltInKind(kind string) string {
	same := func(name string) bool { return foldKind(name) == foldKind(kind) }
	if n := slices.IndexFunc(builtInKinds, same); n >= 0 {
		return builtInKinds[n]
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
