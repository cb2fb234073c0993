package desk

import "context"

// Lister is implemented by a [Directory] that can list people, so that targets that name people can
// be notified.
type Lister interface {
	// People returns the people of a name such as group:dba or oncall:db at this time. known is
	// false if there is no such name.
	People(ctx context.Context, who string) (people []string, known bool, err error)
}

// People returns the list of a name.
func (m StaticDirectory) People(_ context.Context, who string) (people []string, known bool, err error) {
	people, known = m[who]
	return people, known, nil
}

// CanStandIn returns nil if a delegate can stand in for an absent person: the decision of the
// delegate counts, also under separation of duties, and the delegate belongs to each group of the
// request that the absent person belongs to. A delegate gets no rights: votes are counted for the
// groups of the voter. [Code] knows the errors.
func CanStandIn(r Request, absent, delegate string, directory Directory) error {
	if err := CheckEligible(r, delegate, directory); err != nil {
		return err
	}
	d := &update{r: r, env: Env{Directory: directory}, command: "decide", from: From{Actor: Actor{ID: delegate}}}
	for _, g := range r.Requirement.Groups {
		in, err := d.isMember(g, absent)
		if err == nil && in {
			in, err = d.isMember(g, delegate)
			if err == nil && !in {
				err = d.refuse(ErrNotMember, "")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
