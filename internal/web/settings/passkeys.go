package settings

import (
	"encoding/json"
	"net/http"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// passkeyScript creates passkeys; sign-in pages use the same script.
const passkeyScript = "/signin/passkeys.js"

// passkeysData is the list of a member's passkeys on the profile page.
type passkeysData struct {
	api.Passkeys
	Script string
	// Path is that of the page, for the way back from a new sign-in.
	Path string
}

// passkeysOf returns the passkeys of the signed-in person; nil if that is not a member.
func passkeysOf(v *page.Visit) (*passkeysData, error) {
	list, err := v.API.Passkeys(v.Context())
	if err != nil {
		if page.ProblemOf(err).Status == http.StatusNotFound {
			return nil, nil
		}
		return nil, err
	}
	return &passkeysData{Passkeys: list, Script: passkeyScript, Path: "/me"}, nil
}

// passkeyOptions answers the script with what the browser needs to create a passkey.
func passkeyOptions(v *page.Visit) (page.Response, error) {
	options, err := v.API.PasskeyOptions(v.Context())
	if err != nil {
		p := page.ProblemOf(err)
		return page.JSON{Status: p.Status, Body: p}, nil
	}
	return page.JSON{Status: http.StatusOK, Body: options}, nil
}

// addPasskey stores the passkey that the browser has created.
func addPasskey(v *page.Visit) (page.Response, error) {
	created := api.AddPasskey{Name: v.FormValue("name"), State: v.FormValue("state"), Response: json.RawMessage(v.FormValue("response"))}
	if !json.Valid(created.Response) {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.T("passkeys.script")}
	}
	if _, err := v.API.AddPasskey(v.Context(), created); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/me#passkeys", Note: "note.passkey"}, nil
}

func renamePasskey(v *page.Visit) (page.Response, error) {
	if _, err := v.API.RenamePasskey(v.Context(), v.PathValue("id"), v.FormValue("name")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/me#passkeys", Note: "note.passkeyrenamed"}, nil
}

func removePasskey(v *page.Visit) (page.Response, error) {
	if err := v.API.RemovePasskey(v.Context(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/me#passkeys", Note: "note.passkeyremoved"}, nil
}
