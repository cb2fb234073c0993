// Package settings has the profile of the signed-in person and the administration.
package settings

import (
	"net/http"
	"slices"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
)

// Routes lists the profile and the administration.
func Routes() page.Routes {
	return page.Routes{
		"GET /me":                         me,
		"POST /me/language":               chooseLanguage,
		"POST /me/notifications":          saveNotifications,
		"POST /me/passkeys":               addPasskey,
		"POST /me/passkeys/options":       passkeyOptions,
		"POST /me/passkeys/{id}/rename":   renamePasskey,
		"POST /me/passkeys/{id}/remove":   removePasskey,
		"POST /me/unlink":                 unlink,
		"POST /me/browsers":               addBrowser,
		"POST /me/browsers/{id}/remove":   removeBrowser,
		"POST /me/sessions/{id}/end":      endMySession,
		"GET /link/{token}":               showLink,
		"POST /link/{token}":              useLink,
		"GET /admin":                      admin,
		"POST /admin/members":             invite,
		"POST /admin/members/{id}/remove": removeMember,
		"POST /admin/{list}/{id}/end":     endCredential,
	}
}

// meData is the data of the profile page.
type meData struct {
	Notifications *notificationsData // nil for roles without notifications
	Push          *pushData          // nil if the server does not notify browsers

	api.Me
	Languages []languageChoice
	Passkeys  *passkeysData     // nil: the person signs in otherwise
	Links     []api.ChannelLink // the linked accounts of channels
	Sessions  credentialTable
}

// me shows the signed-in person.
func me(v *page.Visit) (page.Response, error) {
	data := meData{Me: v.Me, Languages: languagesOf(v)}
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
		if data.Links, err = v.API.ChannelLinks(v.Context()); err != nil {
			return nil, err
		}
	}
	if data.Sessions, err = credentialsOf(v, "sessions", client.MySessions, "/me/sessions"); err != nil && !slices.Contains([]int{http.StatusNotFound, http.StatusForbidden}, page.ProblemOf(err).Status) {
		return nil, err
	}
	p := page.Page{Name: "me", Title: v.T("me.title"), Data: data}
	if data.Push != nil {
		p.Scripts, p.TrustedTypes = []string{"push.js"}, page.WorkerTypes
	}
	return p, nil
}
