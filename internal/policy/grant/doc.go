// Package grant remembers an approval within bounds: for one tool, in one scope, for similar
// arguments, until a time.
//
//	g, err := grant.Narrowest(input, decision, grant.Terms{ID: id, By: "ann", Now: now, TTL: 8 * time.Hour, MaxUses: 20})
//	g, err = g.Relax("/rows", grant.AtMost(1000))      // a person's choice, leaf by leaf
//	…
//	use, err := g.Match(input, decision, usage, now)   // a *Mismatch says why not
//
// A grant is derived from an approved action and at first matches nothing else. It is closed by
// default: an argument that the grant does not list, a missing argument, another type, another
// scope or another rule, and the grant does not match. Then a person is asked, as without the
// grant. A grant is never unlimited.
//
// The package is pure. How often a grant was used, and for which amount, is given as [Usage]. The
// caller counts the [Use] in the transaction that starts the action.
package grant
