package web

import (
	"net/http"

	"github.com/fermata-go/fermata/api"
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

func accountName(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

// channelTitle returns the name of a channel.
func (v *visit) channelTitle(kind string) string {
	if title, ok := v.site.texts["channel."+kind]; ok {
		return title
	}
	return kind
}

// ChannelTitle returns the name of a channel, for templates.
func (d shell) ChannelTitle(kind string) string { return d.channelTitle(kind) }

// LinkAccount returns a linked account, for templates.
func (d shell) LinkAccount(l api.ChannelLink) string { return accountName(l.Name, l.Sender) }

// showLink shows which account of a channel a one-time link would link to whom. It links nothing.
func (s *Site) showLink(v *visit) (response, error) {
	offer, err := v.api.LinkOffer(v.ctx(), v.PathValue("token"))
	return v.linkPage(&offer, err)
}

// linkPage returns the page of a one-time link, or with the reason why it does not work.
func (v *visit) linkPage(offer *api.LinkOffer, err error) (response, error) {
	data := linkData{Offer: offer, Person: v.Me.Principal}
	if v.Me.Name != "" {
		data.Person = v.Me.Name + " (" + v.Me.Principal + ")"
	}
	answer := page{Name: "link", Title: v.t("link.title"), Nav: "/me"}
	switch p := problemOf(err); {
	case err == nil && !offer.Taken:
	case err == nil || p.Status == http.StatusConflict:
		data.Problem, answer.Status = v.t("link.taken"), http.StatusConflict
	case p.Status == http.StatusBadRequest || p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusNotFound:
		data.Problem, answer.Status = v.t("link.invalid"), http.StatusGone
	default:
		return nil, err
	}
	answer.Data = data
	return answer, nil
}

// useLink links the account.
func (s *Site) useLink(v *visit) (response, error) {
	if _, err := v.api.LinkChannel(v.ctx(), v.PathValue("token")); err != nil {
		return v.linkPage(nil, err)
	}
	return redirect{To: "/me", Note: "note.linked"}, nil
}

// unlink ends the link of an account.
func (s *Site) unlink(v *visit) (response, error) {
	if err := v.api.UnlinkChannel(v.ctx(), v.PostFormValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: "/me", Note: "note.unlinked"}, nil
}
