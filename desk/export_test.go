package desk

import (
	"maps"
	"slices"
	"time"
)

// Next is when the clock has something to do with the request, as things stand at now; zero if never. Outside of tests it comes with each [Change].
func Next(r Request, now time.Time) time.Time {
	d := &draft{r: r, now: now.UTC().Round(0)}
	return d.next()
}

// Acts lists the names of all acts.
func Acts() []Name { return slices.Sorted(maps.Keys(rules)) }
