package desk

import (
	"maps"
	"slices"
	"time"
)

// NextDue returns when the next timer of the request is due at now; zero if never. Outside of tests
// it is part of each [Change].
func NextDue(r Request, now time.Time) time.Time {
	d := &update{r: r, now: now.UTC().Round(0)}
	return d.nextDue()
}

// Commands returns the names of all commands.
func Commands() []CommandName { return slices.Sorted(maps.Keys(permissions)) }
