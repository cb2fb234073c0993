package reports

import (
	"slices"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
)

// deliveryStates are the filters of the list of deliveries.
var deliveryStates = []string{"", "queued", "sent", "seen", "failed", "dead"}

// deliveriesData is the data of the page of deliveries.
type deliveriesData struct {
	Items  []api.Delivery
	Health []api.ChannelHealth
	States []page.FilterLink
	// Request and Channel are the other filters.
	Request, Channel string
	Next             string // the address of the next page
	// CanSend reports whether the person may send deliveries again.
	CanSend bool
}

// deliveries lists deliveries, the newest change of a page first.
func deliveries(v *page.Visit) (page.Response, error) {
	q := client.DeliveryQuery{State: v.FormValue("state"), Channel: v.FormValue("channel"), Request: v.FormValue("request"), Cursor: v.FormValue("cursor")}
	if !slices.Contains(deliveryStates, q.State) {
		return nil, page.ErrNotFound
	}
	list, err := v.API.Deliveries(v.Context(), q)
	if err != nil {
		return nil, err
	}
	data := deliveriesData{Items: list.Items, Request: q.Request, Channel: q.Channel, CanSend: slices.Contains(v.Me.Roles, "admin")}
	if data.Health, err = v.API.DeliveryHealth(v.Context()); err != nil {
		return nil, err
	}
	slices.SortStableFunc(data.Items, func(a, b api.Delivery) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	for _, state := range deliveryStates {
		title := v.T("deliveries.all")
		if state != "" {
			title = v.T("delivery." + state)
		}
		data.States = append(data.States, page.FilterLink{Title: title, Href: page.WithQuery("/deliveries", "state", state, "channel", q.Channel, "request", q.Request), Current: state == q.State})
	}
	if list.Next != "" {
		data.Next = page.WithQuery("/deliveries", "state", q.State, "channel", q.Channel, "request", q.Request, "cursor", list.Next)
	}
	return page.Page{Name: "deliveries", Title: v.T("deliveries.title"), Data: data}, nil
}

// sendAgain sends a delivery again.
func sendAgain(v *page.Visit) (page.Response, error) {
	if _, err := v.API.SendDelivery(v.Context(), v.PostFormValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: page.WithQuery("/deliveries", "state", v.PostFormValue("state"), "channel", v.PostFormValue("channel"), "request", v.PostFormValue("request")), Note: "note.sentagain"}, nil
}
