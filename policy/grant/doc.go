// Package grant remembers a person's yes, within bounds: this tool, in this place, with arguments like these, until then.
//
//	g, err := grant.Narrowest(input, decision, grant.Terms{ID: id, By: "ann", Now: now, TTL: 8 * time.Hour, MaxUses: 20})
//	g, err = g.Relax("/rows", grant.AtMost(1000))      // a person's choice, leaf by leaf
//	…
//	use, err := g.Match(input, decision, usage, now)   // a *Mismatch says why not
//
// A grant is made by the machine from what was approved, and matches at first nothing else. The world is closed: an argument
// that the grant does not name, one that is missing, another type, another place, another rule, and the grant does not
// match; then a person is asked, as without it. Nothing here knows "always".
//
// The package is pure. How often a grant was used, and for how much, comes in as [Usage]; whoever keeps grants counts the
// [Use] in the transaction that lets the action go ahead.
package grant
