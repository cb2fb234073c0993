package web

import (
	"net/http"
	"slices"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// meData is the data of the profile page.
type meData struct {
	Notifications *notificationsData // nil for roles without notifications
	Push          *pushData          // nil if the server does not notify browsers

	api.Me
	Passkeys *passkeysData     // nil: the person signs in otherwise
	Links    []api.ChannelLink // the linked accounts of channels
	Sessions credentialTable
}

// me shows the signed-in person.
func (s *Site) me(v *visit) (response, error) {
	data := meData{Me: v.Me}
	var err error
	if data.Notifications, err = notificationsOf(v); err != nil {
		return nil, err
	}
	if data.Push, err = pushOf(v); err != nil {
		return nil, err
	}
	if data.Passkeys, err = passkeysOf(v); err != nil {
		return nil, err
	}
	if slices.Contains(v.Me.Roles, "approver") || slices.Contains(v.Me.Roles, "admin") {
		if data.Links, err = v.api.ChannelLinks(v.ctx()); err != nil {
			return nil, err
		}
	}
	if data.Sessions, err = credentialsOf(v, "sessions", client.MySessions, "/me/sessions"); err != nil && problemOf(err).Status != http.StatusNotFound {
		return nil, err
	}
	p := page{Name: "me", Title: v.t("me.title"), Data: data}
	if data.Push != nil {
		p.Scripts, p.TrustedTypes = []string{"push.js"}, workerTypes
	}
	return p, nil
}
