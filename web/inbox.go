package web

import "github.com/fermata-go/fermata/client"

// inbox lists the open requests.
func (s *Site) inbox(v *visit) (response, error) {
	list, err := v.api.Requests(v.ctx(), client.Query{State: "pending", Limit: 100})
	if err != nil {
		return nil, err
	}
	return page{Name: "inbox", Title: v.t("inbox.title"), Data: list.Items}, nil
}
