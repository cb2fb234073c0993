package web

import (
	"slices"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// deliveryStates are the filters of the list of deliveries.
var deliveryStates = []string{"", "queued", "sent", "seen", "failed", "dead"}

// deliveriesData is the data of the page of deliveries.
type deliveriesData struct {
	Items  []api.Delivery
	Health []api.ChannelHealth
	States []filterLink
	// Request and Channel are the other filters.
	Request, Channel string
	Next             string // the address of the next page
	// CanSend reports whether the person may send deliveries again.
	CanSend bool
}

// deliveries lists deliveries, the newest change of a page first.
func (s *Site) deliveries(v *visit) (response, error) {
	q := client.DeliveryQuery{State: v.FormValue("state"), Channel: v.FormValue("channel"), Request: v.FormValue("request"), Cursor: v.FormValue("cursor")}
	if !slices.Contains(deliveryStates, q.State) {
		return nil, errNotFound
	}
	list, err := v.api.Deliveries(v.ctx(), q)
	if err != nil {
		return nil, err
	}
	data := deliveriesData{Items: list.Items, Request: q.Request, Channel: q.Channel, CanSend: slices.Contains(v.Me.Roles, "admin")}
	if data.Health, err = v.api.DeliveryHealth(v.ctx()); err != nil {
		return nil, err
	}
	slices.SortStableFunc(data.Items, func(a, b api.Delivery) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	for _, state := range deliveryStates {
		title := v.t("deliveries.all")
		if state != "" {
			title = v.t("delivery." + state)
		}
		data.States = append(data.States, filterLink{Title: title, Href: pageURL("/deliveries", "state", state, "channel", q.Channel, "request", q.Request), Current: state == q.State})
	}
	if list.Next != "" {
		data.Next = pageURL("/deliveries", "state", q.State, "channel", q.Channel, "request", q.Request, "cursor", list.Next)
	}
	return page{Name: "deliveries", Title: v.t("deliveries.title"), Data: data}, nil
}

// sendAgain sends a delivery again.
func (s *Site) sendAgain(v *visit) (response, error) {
	if _, err := v.api.SendDelivery(v.ctx(), v.PostFormValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: pageURL("/deliveries", "state", v.PostFormValue("state"), "channel", v.PostFormValue("channel"), "request", v.PostFormValue("request")), Note: "note.sentagain"}, nil
}
