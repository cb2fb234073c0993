package governance

import (
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/web/page"
)

// grantRow is a grant in the list.
type grantRow struct {
	api.Grant
	Active bool
}

// grants lists remembered approvals.
func grants(v *page.Visit) (page.Response, error) {
	list, err := v.API.Grants(v.Context())
	if err != nil {
		return nil, err
	}
	rows := make([]grantRow, len(list))
	for i, g := range list {
		rows[i] = grantRow{Grant: g, Active: g.Revoked == nil && g.Until.After(v.Now) && g.Uses < g.MaxUses}
	}
	return page.Page{Name: "grants", Title: v.T("grants.title"), Data: rows}, nil
}

// revokeGrant revokes a grant.
func revokeGrant(v *page.Visit) (page.Response, error) {
	if err := v.API.RevokeGrant(v.Context(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/grants", Note: "note.revoked"}, nil
}
