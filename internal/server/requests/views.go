package requests

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/search"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// maxSavedViews is how many views a person may have.
const maxSavedViews = 50

const viewsPath = api.Prefix + "/me/views"

type saveViewInput struct{ Body api.SaveView }

type changeViewInput struct {
	ID   string `path:"id" maxLength:"512"`
	Body api.SaveView
}

type viewOutput struct{ Body api.SavedView }

func (h *Handlers) registerSavedViews(to huma.API) {
	roles := []authn.Role{authn.RoleApprover, authn.RoleAuditor}
	huma.Register(to, endpoint.New("list-views", http.MethodGet, viewsPath, "List your saved searches", roles...), h.savedViews)
	save := endpoint.New("save-view", http.MethodPost, viewsPath, "Save a search under a name", roles...)
	save.DefaultStatus = http.StatusCreated
	huma.Register(to, save, func(ctx context.Context, in *saveViewInput) (*viewOutput, error) {
		return h.saveView(ctx, "", in.Body)
	})
	huma.Register(to, endpoint.New("change-view", http.MethodPut, viewsPath+"/{id}", "Change a saved search", roles...), func(ctx context.Context, in *changeViewInput) (*viewOutput, error) {
		return h.saveView(ctx, in.ID, in.Body)
	})
	remove := endpoint.New("delete-view", http.MethodDelete, viewsPath+"/{id}", "Delete a saved search", roles...)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, h.deleteView)
}

func (h *Handlers) savedViews(ctx context.Context, _ *struct{}) (*endpoint.Page[api.SavedView], error) {
	me := endpoint.Principal(ctx)
	views, err := h.Executor.SavedViews(ctx, me.Account, me.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return endpoint.Paged(views, len(views), savedViewOf, nil)
}

func savedViewOf(v executor.SavedView) api.SavedView {
	return api.SavedView{ID: v.ID, SaveView: api.SaveView{Name: v.Name, Query: v.Query}}
}

// saveView changes a view, or adds one if the id is "".
func (h *Handlers) saveView(ctx context.Context, id string, body api.SaveView) (*viewOutput, error) {
	if _, err := search.Parse(body.Query); err != nil {
		return nil, problems.New("bad_request", "the search is not valid: %s", err)
	}
	me, saved := endpoint.Principal(ctx), executor.SavedView{ID: id, Name: body.Name, Query: body.Query}
	err := h.Executor.ChangeViews(ctx, me.Account, me.ID, func(views []executor.SavedView) ([]executor.SavedView, error) {
		if slices.ContainsFunc(views, func(v executor.SavedView) bool { return v.Name == body.Name && v.ID != id }) {
			return nil, problems.New("bad_request", "you have a view with the name %q; choose another one", body.Name)
		}
		if id == "" {
			if len(views) >= maxSavedViews {
				return nil, problems.New("bad_request", "you have %d views, which is the maximum; delete one first", maxSavedViews)
			}
			saved.ID = ident.Random("view")
			return append(views, saved), nil
		}
		at := slices.IndexFunc(views, func(v executor.SavedView) bool { return v.ID == id })
		if at < 0 {
			return nil, store.ErrNotFound
		}
		views[at] = saved
		return views, nil
	})
	if err != nil {
		return nil, problems.Of(err)
	}
	return &viewOutput{savedViewOf(saved)}, nil
}

func (h *Handlers) deleteView(ctx context.Context, in *requestInput) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	err := h.Executor.ChangeViews(ctx, me.Account, me.ID, func(views []executor.SavedView) ([]executor.SavedView, error) {
		left := slices.DeleteFunc(slices.Clone(views), func(v executor.SavedView) bool { return v.ID == in.ID })
		if len(left) == len(views) {
			return nil, store.ErrNotFound
		}
		return left, nil
	})
	if err != nil {
		return nil, problems.Of(err)
	}
	return nil, nil
}
