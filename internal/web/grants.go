package web

import (
	"github.com/fermata-go/fermata/api"
)

// grantRow is a grant in the list.
type grantRow struct {
	api.Grant
	Active bool
}

// grants lists remembered approvals.
func (s *Site) grants(v *visit) (response, error) {
	list, err := v.api.Grants(v.ctx())
	if err != nil {
		return nil, err
	}
	rows := make([]grantRow, len(list))
	for i, g := range list {
		rows[i] = grantRow{Grant: g, Active: g.Revoked == nil && g.Until.After(v.Now) && g.Uses < g.MaxUses}
	}
	return page{Name: "grants", Title: v.t("grants.title"), Data: rows}, nil
}

// revokeGrant revokes a grant.
func (s *Site) revokeGrant(v *visit) (response, error) {
	if err := v.api.RevokeGrant(v.ctx(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: "/grants", Note: "note.revoked"}, nil
}
