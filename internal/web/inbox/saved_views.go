package inbox

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// inboxView is a saved view in the inbox.
type inboxView struct {
	api.SavedView
	Href    string
	Current bool
}

func viewHref(query string) string {
	return "/inbox?" + url.Values{"tab": {tabAll}, "q": {query}}.Encode()
}

// readViews adds the saved views, and what can be saved as a new one.
func (d *inboxData) readViews(v *page.Visit) error {
	list, err := v.API.SavedViews(v.Context())
	if err != nil {
		return err
	}
	saved := false
	for _, view := range list.Items {
		current := d.Tab == tabAll && view.Query == d.Query
		saved = saved || current
		d.Views = append(d.Views, inboxView{view, viewHref(view.Query), current})
	}
	if d.Query != "" && !saved && d.Bad == "" {
		d.Saving = d.search()
	}
	return nil
}

// viewsData is the data of the page for saved views.
type viewsData struct {
	Views []inboxView
	// Name and Query are those of a new view that was not saved, for the reason Bad.
	Name, Query, Bad string
}

func (s *Pages) savedViews(v *page.Visit) (page.Response, error) {
	return s.viewsPage(v, new(viewsData), http.StatusOK)
}

func (s *Pages) viewsPage(v *page.Visit, d *viewsData, status int) (page.Response, error) {
	list, err := v.API.SavedViews(v.Context())
	if err != nil {
		return nil, err
	}
	for _, view := range list.Items {
		d.Views = append(d.Views, inboxView{SavedView: view, Href: viewHref(view.Query)})
	}
	return page.Page{Name: "views", Title: v.T("views.title"), Nav: "/inbox", Status: status, Data: d}, nil
}

// saveView saves a new view, or changes the one in the path.
func (s *Pages) saveView(v *page.Visit) (page.Response, error) {
	view := api.SaveView{Name: strings.TrimSpace(v.PostFormValue("name")), Query: strings.TrimSpace(v.PostFormValue("query"))}
	saved, err := v.API.SaveView(v.Context(), v.PathValue("id"), view)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusBadRequest {
		reason := p.Detail
		for _, f := range p.Fields {
			reason += " " + f.Message
		}
		return s.viewsPage(v, &viewsData{Name: view.Name, Query: view.Query, Bad: reason}, http.StatusBadRequest)
	}
	if err != nil {
		return nil, err
	}
	return page.Redirect{To: viewHref(saved.Query), Note: "note.viewsaved"}, nil
}

func (s *Pages) deleteView(v *page.Visit) (page.Response, error) {
	if err := v.API.DeleteView(v.Context(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/inbox/views", Note: "note.viewdeleted"}, nil
}
