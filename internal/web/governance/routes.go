package governance

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/web/page"
)

// routesData is the data of the page of the routes.
type routesData struct {
	Routes []plannedRoute
	// At is the time of the simulated request as the form shows it, Asked the time itself.
	At    string
	Asked time.Time
	Bad   bool // the time could not be read
}

// plannedRoute is a route with what it does for a request created at a time.
type plannedRoute struct {
	desk.Route
	Plan  []desk.PlannedStep
	Error string
}

const (
	localTime  = "2006-01-02T15:04" // of an input of type datetime-local
	maxPlanned = 50
)

// routesPage shows the notices of each route and their times.
func routesPage(v *page.Visit) (page.Response, error) {
	raw, err := v.API.Routes(v.Context())
	if err != nil {
		return nil, err
	}
	var routes map[string]desk.Route
	if err := json.Unmarshal(raw, &routes); err != nil {
		return nil, err
	}
	data := routesData{Asked: v.Now, At: v.FormValue("at")}
	if data.At != "" {
		at, err := time.ParseInLocation(localTime, data.At, v.Zone)
		if data.Bad = err != nil; !data.Bad {
			data.Asked = at
		}
	}
	data.At = data.Asked.In(v.Zone).Format(localTime)
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		planned := plannedRoute{Route: routes[name]}
		if planned.Name == "" {
			planned.Name = name
		}
		if planned.Plan, err = desk.Simulate(planned.Route, data.Asked, maxPlanned); err != nil {
			planned.Error = err.Error()
		}
		data.Routes = append(data.Routes, planned)
	}
	return page.Page{Name: "routes", Title: v.T("routes.title"), Data: data}, nil
}
