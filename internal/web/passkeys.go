package web

import (
	"encoding/json"
	"net/http"

	"github.com/fermata-go/fermata/api"
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
func passkeysOf(v *visit) (*passkeysData, error) {
	list, err := v.api.Passkeys(v.ctx())
	if err != nil {
		if problemOf(err).Status == http.StatusNotFound {
			return nil, nil
		}
		return nil, err
	}
	return &passkeysData{Passkeys: list, Script: passkeyScript, Path: "/me"}, nil
}

// passkeyOptions answers the script with what the browser needs to create a passkey.
func (s *Site) passkeyOptions(v *visit) (response, error) {
	options, err := v.api.PasskeyOptions(v.ctx())
	if err != nil {
		p := problemOf(err)
		return jsonAnswer{Status: p.Status, Body: p}, nil
	}
	return jsonAnswer{Status: http.StatusOK, Body: options}, nil
}

// addPasskey stores the passkey that the browser has created.
func (s *Site) addPasskey(v *visit) (response, error) {
	created := api.AddPasskey{Name: v.FormValue("name"), State: v.FormValue("state"), Response: json.RawMessage(v.FormValue("response"))}
	if !json.Valid(created.Response) {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: v.t("passkeys.script")}
	}
	if _, err := v.api.AddPasskey(v.ctx(), created); err != nil {
		return nil, err
	}
	return redirect{To: "/me#passkeys", Note: "note.passkey"}, nil
}

func (s *Site) renamePasskey(v *visit) (response, error) {
	if _, err := v.api.RenamePasskey(v.ctx(), v.PathValue("id"), v.FormValue("name")); err != nil {
		return nil, err
	}
	return redirect{To: "/me#passkeys", Note: "note.passkeyrenamed"}, nil
}

func (s *Site) removePasskey(v *visit) (response, error) {
	if err := v.api.RemovePasskey(v.ctx(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: "/me#passkeys", Note: "note.passkeyremoved"}, nil
}

// jsonAnswer is a response for a script.
type jsonAnswer struct {
	Status int
	Body   any
}

func (a jsonAnswer) write(_ *Site, v *visit) error {
	text, err := json.Marshal(a.Body)
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "no-store")
	v.w.WriteHeader(a.Status)
	_, _ = v.w.Write(text) // a disconnected client does not read it
	return nil
}
