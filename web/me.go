package web

// me shows the signed-in person.
func (s *Site) me(v *visit) (response, error) {
	return page{Name: "me", Title: v.t("me.title"), Data: v.Me}, nil
}
