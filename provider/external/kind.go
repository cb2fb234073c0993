package external

import (
	"fmt"
	"regexp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/kinds"
)

// safeKind has no letters that look like others.
var safeKind = regexp.MustCompile(`^[a-z][a-z0-9._-]*$`)

// checkKindName checks the kind of a new request. The kinds that the author of this program
// registered keep their names, whatever they are.
func checkKindName(kind string) error {
	if kind == fermata.Approval.Name() {
		return nil
	}
	switch same := kinds.BuiltIn(kind); same {
	case "":
	case fermata.Approval.Name():
		return &InputError{"kind", fmt.Sprintf("it looks like %s; an approval has exactly this kind", same)}
	default:
		return &InputError{"kind", fmt.Sprintf("only Fermata itself can ask with the kind %s, and no kind may look like it", same)}
	}
	if known, registered := fermata.LookupKind(kind); registered {
		if known.IsForEndUser() {
			return &InputError{"kind", "only a conversation asks its end user"}
		}
		return nil
	}
	if len(kind) > maxKind || !safeKind.MatchString(kind) {
		return &InputError{"kind", fmt.Sprintf("it must have lower-case ASCII letters, digits, '-', '_' and '.' only, begin with a letter, and have at most %d bytes", maxKind)}
	}
	return nil
}
