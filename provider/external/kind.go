package external

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
)

// builtInKinds are the kinds that only Fermata itself asks. People know what they mean, so an agent
// elsewhere may not use them, or a name that looks like one of them.
var builtInKinds = []string{fermata.EffectInDoubt.Name(), "approval-gate", "hold", "tool-response", "tool-follow-up", "limit-reached"}

// safeKind has no letters that look like others.
var safeKind = regexp.MustCompile(`^[a-z][a-z0-9._-]*$`)

// checkKindName checks the kind of a new request. The kinds that the author of this program
// registered keep their names, whatever they are.
func checkKindName(kind string) error {
	if kind == fermata.Approval.Name() {
		return nil
	}
	isSame := func(name string) bool { return foldKind(name) == foldKind(kind) }
	if n := slices.IndexFunc(builtInKinds, isSame); n >= 0 {
		return &InputError{"kind", fmt.Sprintf("only Fermata itself can ask with the kind %s, and no kind may look like it", builtInKinds[n])}
	}
	if isSame(fermata.Approval.Name()) {
		return &InputError{"kind", fmt.Sprintf("it looks like %s; an approval has exactly this kind", fermata.Approval.Name())}
	}
	if _, registered := fermata.LookupKind(kind); registered {
		return nil
	}
	if len(kind) > maxKind || !safeKind.MatchString(kind) {
		return &InputError{"kind", fmt.Sprintf("it must have lower-case ASCII letters, digits, '-', '_' and '.' only, begin with a letter, and have at most %d bytes", maxKind)}
	}
	return nil
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
