package web

import (
	"net/http"
	"slices"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// credentialTable is a list of credentials with a button to end each.
type credentialTable struct {
	// ID is the part of the texts and of the address of the page.
	ID, List string
	Items    []api.Credential
	// Base is the path of the forms.
	Base string
}

// adminData is the data of the administration page.
type adminData struct {
	// Members is nil if people sign in at an identity provider.
	Members  *api.Page[api.Member]
	Tables   []credentialTable
	Channels []api.ChannelHealth
	Settings []api.Setting
	Roles    []string
	// Name and Role are those of an invitation: of the new one, or of one that was not made for
	// the reason Bad.
	Name, Role, Bad string
	Link            string // of the new invitation
}

// adminLists are the lists of credentials by the last part of their path.
var adminLists = map[string]string{"invitations": client.Invitations, "keys": client.APIKeys, "sessions": client.Sessions}

// isAdmin reports whether the signed-in person is an admin.
func (v *visit) isAdmin() bool { return slices.Contains(v.Me.Roles, "admin") }

func (s *Site) admin(v *visit) (response, error) {
	return s.adminPage(v, &adminData{Role: "approver"}, http.StatusOK)
}

func (s *Site) adminPage(v *visit, d *adminData, status int) (response, error) {
	d.Roles = []string{"approver", "auditor", "agent", "user", "admin"}
	members, err := v.api.Members(v.ctx())
	switch {
	case err == nil:
		d.Members = &members
	case problemOf(err).Status != http.StatusNotFound:
		return nil, err
	}
	ids := []string{"invitations", "sessions", "keys"}
	if d.Members == nil {
		ids = ids[1:]
	}
	for _, id := range ids {
		table, err := credentialsOf(v, id, adminLists[id], "/admin/"+id)
		if err != nil {
			return nil, err
		}
		d.Tables = append(d.Tables, table)
	}
	if d.Channels, err = v.api.DeliveryHealth(v.ctx()); err != nil {
		return nil, err
	}
	settings, err := v.api.Configuration(v.ctx())
	if err != nil {
		return nil, err
	}
	d.Settings = settings.Items
	return page{Name: "admin", Title: v.t("admin.title"), Nav: "/admin", Status: status, Data: d}, nil
}

func credentialsOf(v *visit, id, list, base string) (credentialTable, error) {
	page, err := v.api.Credentials(v.ctx(), list)
	return credentialTable{ID: id, List: list, Items: page.Items, Base: base}, err
}

// invite shows the link of a new invitation once.
func (s *Site) invite(v *visit) (response, error) {
	d := &adminData{Name: v.FormValue("name"), Role: v.FormValue("role")}
	made, err := v.api.Invite(v.ctx(), api.Invite{Name: d.Name, Roles: []string{d.Role}})
	if err != nil {
		p := problemOf(err)
		if p.Status != http.StatusBadRequest {
			return nil, err
		}
		d.Bad = p.Detail
		for _, f := range p.Fields {
			d.Bad += " " + f.Message
		}
		return s.adminPage(v, d, http.StatusUnprocessableEntity)
	}
	scheme := "https://"
	if v.TLS == nil && v.Header.Get("X-Forwarded-Proto") != "https" {
		scheme = "http://"
	}
	d.Link = scheme + v.Host + made.Path
	return s.adminPage(v, d, http.StatusOK)
}

func (s *Site) removeMember(v *visit) (response, error) {
	if err := v.api.RemoveMember(v.ctx(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: "/admin#members", Note: "note.memberremoved"}, nil
}

func (s *Site) endCredential(v *visit) (response, error) {
	list, known := adminLists[v.PathValue("list")]
	if !known {
		return nil, errNotFound
	}
	if err := v.api.EndCredential(v.ctx(), list, v.PathValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: "/admin#" + v.PathValue("list"), Note: "note.ended." + v.PathValue("list")}, nil
}

func (s *Site) endMySession(v *visit) (response, error) {
	if err := v.api.EndCredential(v.ctx(), client.MySessions, v.PathValue("id")); err != nil {
		return nil, err
	}
	return redirect{To: "/me#sessions", Note: "note.ended.sessions"}, nil
}
