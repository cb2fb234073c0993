package settings

import (
	"net/http"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/web/page"
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
	// Changed are the settings that do not have their default, Defaults the others.
	Changed, Defaults []api.Setting
	Roles             []string
	// Name and Role are those of an invitation: of the new one, or of one that was not made for
	// the reason Bad.
	Name, Role, Bad string
	Link            string // of the new invitation
}

// adminLists are the lists of credentials by the last part of their path.
var adminLists = map[string]string{"invitations": client.Invitations, "keys": client.APIKeys, "sessions": client.Sessions}

func admin(v *page.Visit) (page.Response, error) {
	return adminPage(v, &adminData{Role: "approver"}, http.StatusOK)
}

func adminPage(v *page.Visit, d *adminData, status int) (page.Response, error) {
	d.Roles = []string{"approver", "auditor", "agent", "user", "admin"}
	members, err := v.API.Members(v.Context())
	switch {
	case err == nil:
		d.Members = &members
	case page.ProblemOf(err).Status != http.StatusNotFound:
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
	if d.Channels, err = v.API.DeliveryHealth(v.Context()); err != nil {
		return nil, err
	}
	settings, err := v.API.Configuration(v.Context())
	if err != nil {
		return nil, err
	}
	d.Settings = settings.Items
	for _, setting := range settings.Items {
		if setting.From == "" {
			d.Defaults = append(d.Defaults, setting)
		} else {
			d.Changed = append(d.Changed, setting)
		}
	}
	return page.Page{Name: "admin", Title: v.T("admin.title"), Nav: "/admin", Status: status, Data: d}, nil
}

func credentialsOf(v *page.Visit, id, list, base string) (credentialTable, error) {
	page, err := v.API.Credentials(v.Context(), list)
	return credentialTable{ID: id, List: list, Items: page.Items, Base: base}, err
}

// invite shows the link of a new invitation once.
func invite(v *page.Visit) (page.Response, error) {
	d := &adminData{Name: v.FormValue("name"), Role: v.FormValue("role")}
	made, err := v.API.Invite(v.Context(), api.Invite{Name: d.Name, Roles: []string{d.Role}})
	if err != nil {
		p := page.ProblemOf(err)
		if p.Status != http.StatusBadRequest {
			return nil, err
		}
		d.Bad = p.Detail
		for _, f := range p.Fields {
			d.Bad += " " + f.Message
		}
		return adminPage(v, d, http.StatusUnprocessableEntity)
	}
	scheme := "http://"
	if v.Secure() {
		scheme = "https://"
	}
	d.Link = scheme + v.Host + made.Path
	return adminPage(v, d, http.StatusOK)
}

func removeMember(v *page.Visit) (page.Response, error) {
	if err := v.API.RemoveMember(v.Context(), v.PathValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/admin#members", Note: "note.memberremoved"}, nil
}

func endCredential(v *page.Visit) (page.Response, error) {
	list, known := adminLists[v.PathValue("list")]
	if !known {
		return nil, page.ErrNotFound
	}
	if err := v.API.EndCredential(v.Context(), list, v.PathValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/admin#" + v.PathValue("list"), Note: "note.ended." + v.PathValue("list")}, nil
}

func endMySession(v *page.Visit) (page.Response, error) {
	if err := v.API.EndCredential(v.Context(), client.MySessions, v.PathValue("id")); err != nil {
		return nil, err
	}
	return page.Redirect{To: "/me#sessions", Note: "note.ended.sessions"}, nil
}
