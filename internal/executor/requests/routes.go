package requests

import (
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/timespan"
)

// RequestTimeout is how long a question may be open: as long as it says itself, but no longer than
// Config.RequestTimeout.
func (s *Service) RequestTimeout(own time.Duration) time.Duration {
	limit := s.config.RequestTimeout
	switch {
	case limit < 0:
		return max(own, 0)
	case own <= 0:
		return limit
	}
	return min(own, limit) //mutate:shorter-deadline-wins
}

// defaultRouteName is the name of the route for what no rule has one for.
const defaultRouteName = "default"

// routeFor is the route of a request: those that rules name, joined; or the configured default; or
// the built-in one, which ends with the timeout.
func (s *Service) routeFor(names []string, timeout time.Duration) desk.Route {
	known := s.config.Routes()
	if len(names) == 0 {
		if route, ok := known[defaultRouteName]; ok {
			return capRoute(route, timeout)
		}
		return defaultRouteFor(timeout, s.config.DefaultPage)
	}
	var routes []desk.Route
	for _, name := range names {
		route, ok := known[name]
		if !ok {
			s.config.Log.Error("unknown route in rule; using the default route", "route", name)
			route = defaultRouteFor(timeout, s.config.DefaultPage)
		}
		routes = append(routes, route)
	}
	joined, err := desk.Join(routes...)
	if err != nil { // it is better to ask by one of the routes than not to ask
		s.config.Log.Error("routes cannot be combined; using the first", "err", err)
		joined = routes[0]
	}
	return capRoute(joined, timeout)
}

// capRoute shortens a route that is longer than the timeout of the interrupt.
func capRoute(route desk.Route, timeout time.Duration) desk.Route {
	last := route.Steps[len(route.Steps)-1]
	if timeout <= 0 || time.Duration(last.At) <= timeout {
		return route
	}
	route = route.WithDeadline(timeout)
	// there the timeout is one of business hours, and a cap never is
	if route.Clock != desk.BusinessClock {
		route.Cap = min(route.Cap, timespan.Duration(timeout))
	}
	return route
}

// capAtOwnTimeout ends a route when the timeout of the interrupt itself has passed, also on the
// business clock or if no notice was delivered. The timeout of the installation is counted by the
// clock of the route.
func capAtOwnTimeout(route desk.Route, own time.Duration) desk.Route {
	later := route.Clock == desk.BusinessClock || route.DeadlineFrom == desk.DeadlineFromDelivered
	if limit := timespan.Duration(own); own > 0 && later && (route.Cap == 0 || route.Cap > limit) {
		route.Cap = limit
	}
	return route
}

// defaultRouteFor is the default route of package desk, stretched or shortened to the timeout.
func defaultRouteFor(timeout time.Duration, page []string) desk.Route {
	if timeout <= 0 {
		timeout = 100 * 365 * 24 * time.Hour
	}
	return desk.DefaultRoute(page...).WithDeadline(timeout)
}
