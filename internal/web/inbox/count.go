package inbox

import (
	"net/http"
	"strconv"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// countText returns a count as people read it: "" for none, "1000+" if not all requests were
// counted.
func countText(n api.BoundedCount) string {
	switch {
	case n.More:
		return strconv.Itoa(n.Count) + "+"
	case n.Count == 0:
		return ""
	}
	return strconv.Itoa(n.Count)
}

// inboxCount tells scripts how many requests wait for the person: for the navigation and the badge
// of the installed page.
func (s *Pages) inboxCount(v *page.Visit) (page.Response, error) {
	counts, err := v.API.RequestCounts(v.Context())
	if err != nil {
		return nil, err
	}
	return page.JSON{Status: http.StatusOK, Body: struct {
		Count int    `json:"count"`
		Text  string `json:"text"`
	}{counts.Mine.Count, countText(counts.Mine)}}, nil
}
