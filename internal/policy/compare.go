package policy

import (
	"fmt"

	"github.com/fermata-go/fermata/internal/requirement"
)

// Weakenings lists the ways in which the second decision is weaker than the first. It is empty if
// the second is at least as strict.
func Weakenings(before, after Decision) []string {
	if after.Verdict.strictness() < before.Verdict.strictness() {
		return []string{fmt.Sprintf("%s becomes %s", before.Verdict, after.Verdict)}
	}
	if before.Verdict != Ask || after.Verdict != Ask {
		return nil
	}
	return requirement.Weakenings(before.Requirement, after.Requirement)
}
