package governance

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/web/page"
)

// grantRow is a grant in the list.
type grantRow struct {
	api.Grant
	Active bool
	Terms  []grantTerm
}

// grantTerm is the constraint of one argument.
type grantTerm struct {
	Name string
	Op   grant.Op
	// Value is the value to compare with; nil for any value.
	Value json.RawMessage
}

// termsOf returns the constraints of the arguments of a grant, by name.
func termsOf(args json.RawMessage) (terms []grantTerm) {
	var constraints map[string]struct {
		Op    grant.Op        `json:"op"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(args, &constraints) != nil {
		return nil
	}
	for _, pointer := range slices.Sorted(maps.Keys(constraints)) {
		c := constraints[pointer]
		terms = append(terms, grantTerm{strings.TrimPrefix(pointer, "/"), c.Op, c.Value})
	}
	return terms
}

// Left returns how often the grant can still be used.
func (g grantRow) Left() int { return max(0, g.MaxUses-g.Uses) }

// grants lists remembered approvals.
func grants(v *page.Visit) (page.Response, error) {
	list, err := v.API.Grants(v.Context())
	if err != nil {
		return nil, err
	}
	rows := make([]grantRow, len(list))
	for i, g := range list {
		rows[i] = grantRow{Grant: g, Terms: termsOf(g.Args), Active: g.Revoked == nil && g.Until.After(v.Now) && g.Uses < g.MaxUses}
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
