package settings

import (
	"html/template"
	"net/http"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// linkData is the data of the page that links an account of a channel.
type linkData struct {
	Offer *api.LinkOffer
	// Problem says why the account cannot be linked.
	Problem string
	// Person is who decisions from the account count as.
	Person string
}

// Account returns the account as people know it, with its id.
func (d linkData) Account() string { return accountName(d.Offer.Name, d.Offer.Sender) }

// linkedAccount returns a linked account, for templates.
func linkedAccount(l api.ChannelLink) string { return accountName(l.Name, l.Sender) }

// Funcs returns the template functions of the profile.
func Funcs() template.FuncMap { return template.FuncMap{"linkedAccount": linkedAccount} }

func accountName(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

// showLink shows which account of a channel a one-time link would link to whom. It links nothing.
func showLink(v *page.Visit) (page.Response, error) {
	offer, err := v.API.LinkOffer(v.Context(), v.PathValue("token"))
	return linkPage(v, &offer, err)
}

// linkPage returns the page of a one-time link, or with the reason why it does not work.
func linkPage(v *page.Visit, offer *api.LinkOffer, err error) (page.Response, error) {
	data := linkData{Offer: offer, Person: v.Me.Principal}
	if v.Me.Name != "" {
		data.Person = v.Me.Name + " (" + v.Me.Principal + ")"
	}
	answer := page.Page{Name: "link", Title: v.T("link.title"), Nav: "/me"}
	switch p := page.ProblemOf(err); {
	case err == nil && !offer.Taken:
	case err == nil || p.Status == http.StatusConflict:
		data.Problem, answer.Status = v.T("link.taken"), http.StatusConflict
	case p.Status == http.StatusBadRequest || p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusNotFound:
		data.Problem, answer.Status = v.T("link.invalid"), http.StatusGone
	default:
		return nil, err
	}
	answer.Data = data
	return answer, nil
}

// useLink links the account.
func useLink(v *page.Visit) (page.Response, error) {
	if _, err := v.API.LinkChannel(v.Context(), v.PathValue("token")); err != nil {
		return linkPage(v, nil, err)
	}
	return page.Redirect{To: "/me", Note: "note.linked"}, nil
}

// unlink ends the link of an account.
func unlink(v *page.Visit) (page.Response, error) {
	if err := v.API.UnlinkChannel(v.Context(), v.PostFormValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/me", Note: "note.unlinked"}, nil
}
