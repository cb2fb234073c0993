package desk

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/timespan"
)

// Join combines the routes of several rules for one request. It keeps all steps, and the earliest
// expiry counts. Routes with different regions or clocks cannot be joined. Join does not check that
// people are notified before the expiry; [Route.Check] does that when routes are loaded, because it
// is too slow for every request.
func Join(routes ...Route) (Route, error) {
	if len(routes) == 0 {
		return DefaultRoute(), nil
	}
	joined := routes[0]
	joined.Steps = nil
	var names, versions []string
	end := Step{At: 1<<63 - 1}
	for _, r := range routes {
		if err := errors.Join(r.check().errs...); err != nil {
			return Route{}, err
		}
		if err := joined.checkJoinable(r); err != nil {
			return Route{}, err
		}
		names, versions = append(names, r.Name), append(versions, r.Version)
		if last := r.Steps[r.expiryStep()]; last.At < end.At {
			end = last
		}
		joined.Steps = append(joined.Steps, r.Steps[:r.expiryStep()]...)
		joined.Cap, joined.Grace = joined.joinedCap(r), min(joined.Grace, r.Grace)
		joined.MinRemaining = max(joined.MinRemaining, r.MinRemaining)
		if r.DeadlineFrom != DeadlineFromDelivered {
			joined.DeadlineFrom = DeadlineFromCreated // the earlier deadline
		}
		if len(joined.Regions) == 0 {
			joined.Regions, joined.Clock = r.Regions, r.Clock
		}
	}
	joined.Name, joined.Version = strings.Join(names, "+"), strings.Trim(strings.Join(versions, "+"), "+")
	joined.Steps = slices.DeleteFunc(joined.Steps, func(s Step) bool { return s.At >= end.At })
	joined.StartImmediately = slices.ContainsFunc(routes, func(r Route) bool { return r.StartImmediately || r.Steps[0].At < end.At && !r.Steps[0].targetsRegion() })
	slices.SortStableFunc(joined.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	joined.Steps = append(joined.Steps, end)
	return joined, errors.Join(joined.check().errs...)
}

// errIncompatibleRoutes is the reason that routes cannot be joined.
var errIncompatibleRoutes = errors.New("different regions or clocks")

func (r Route) checkJoinable(other Route) error {
	regions := len(r.Regions) > 0 && len(other.Regions) > 0 && !reflect.DeepEqual(r.Regions, other.Regions)
	clock := (r.Clock == BusinessClock) != (other.Clock == BusinessClock)
	if regions || clock {
		return fmt.Errorf("cannot join routes %q and %q: %w", r.Name, other.Name, errIncompatibleRoutes)
	}
	return nil
}

// joinedCap returns the cap of two joined routes. A route without a cap cannot be extended, so the
// joined route cannot be either. On the business clock a cap is also an expiry, so it counts.
func (r Route) joinedCap(other Route) timespan.Duration {
	if other.Clock == BusinessClock && (r.Cap == 0 || other.Cap == 0) {
		return max(r.Cap, other.Cap)
	}
	return min(r.Cap, other.Cap)
}
