package web

import "github.com/fermata-go/fermata/api"

// meData is the data of the profile page.
type meData struct {
	api.Me
	Passkeys *passkeysData // nil: the person signs in otherwise
}

// me shows the signed-in person.
func (s *Site) me(v *visit) (response, error) {
	passkeys, err := passkeysOf(v)
	if err != nil {
		return nil, err
	}
	return page{Name: "me", Title: v.t("me.title"), Data: meData{Me: v.Me, Passkeys: passkeys}}, nil
}
