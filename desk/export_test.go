package desk

import (
	"maps"
	"slices"
	"time"
)

// NextDue is when the clock has something to do with the request, as things stand at now; zero if never. Outside of tests it comes with each [Change].
func NextDue(r Request, now time.Time) time.Time {
	d := &update{r: r, now: now.UTC().Round(0)}
	return d.nextDue()
}

// Commands lists the names of all acts.
func Commands() []CommandName { return slices.Sorted(maps.Keys(permissions)) }
